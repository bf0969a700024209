"""The store on Postgres: tables, functions, and thin calls of those functions."""
