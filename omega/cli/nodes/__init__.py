"""`omega nodes`: virtual nodes."""
