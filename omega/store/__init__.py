"""The stores of a cell's state and its job queue: in memory and in Postgres."""
