"""`omega node`: virtual nodes."""
