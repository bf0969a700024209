"""Verbs that copy a cell, and that simulate it as it would be otherwise."""
