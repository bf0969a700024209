"""A cell in a file: what it holds now, and what it did lately."""
