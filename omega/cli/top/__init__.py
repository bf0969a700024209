"""`omega top`: the cell on a terminal, with columns to sort and filters."""
