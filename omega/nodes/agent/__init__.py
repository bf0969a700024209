"""The agent of a machine: it runs there what is placed there."""
