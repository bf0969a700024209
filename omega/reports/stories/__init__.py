"""Stories of jobs and machines: what happened to them in time, from what is on record."""
