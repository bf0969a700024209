"""Synchronisation: how a scheduler's view is brought up to date with the cell."""
