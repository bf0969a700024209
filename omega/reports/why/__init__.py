"""Why a job is not placed, or why it is where it is: one reason, and the evidence."""
