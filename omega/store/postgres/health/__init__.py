"""The health of a Postgres server as far as it concerns a cell: checks and their findings."""
