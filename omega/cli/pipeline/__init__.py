"""`omega pipeline`: jobs that run one after another, to end together within some time."""
