"""`omega submit`, `jobs`, `job` and `cancel`: jobs from submission to their end."""
