"""`omega health`: a check of one process, for what supervises it."""
