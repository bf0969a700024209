"""`omega scheduler`: one replica of a scheduler, or the list of kinds."""
