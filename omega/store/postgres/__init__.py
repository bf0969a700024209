"""The store on Postgres: tables, functions, and thin calls of these functions."""
