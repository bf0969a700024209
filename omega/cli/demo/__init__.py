"""`omega demo`: several schedulers compete for one cell."""
