"""The life cycle of a job: states and moves, reasons to park, back-off."""
