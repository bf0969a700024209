"""`omega status`: the cell, the queue and the processes."""
