"""Synchronisation: how a scheduler's view learns what happened in the cell."""
