"""Where a cell's state and its queue of jobs live: in memory, or in Postgres."""
