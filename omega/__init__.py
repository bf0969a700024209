"""Omega on Postgres: independent schedulers share one cell; the database judges their claims."""

__version__ = "0.1.0"
