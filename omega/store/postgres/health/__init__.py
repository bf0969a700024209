"""The health of a Postgres server, as far as it concerns a cell: signs, and what they mean."""
