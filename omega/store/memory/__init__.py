"""A store in memory: the reference for the Postgres store, and the store of virtual processes."""
