"""What may become of a job: states and moves, parking reasons, back-off."""
