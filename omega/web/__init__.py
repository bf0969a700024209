"""The page for operators: what a cell is doing, live in a browser; it only reads."""
