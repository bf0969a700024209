"""`omega node`: agents and virtual nodes."""
