"""A whole store in memory: what tests compare Postgres with, and the cell of virtual processes."""
