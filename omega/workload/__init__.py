"""What a cell is given to do: machines, what runs on them at the start, and jobs that arrive."""
