"""Programs that host the clients of other systems, each run by its path."""
