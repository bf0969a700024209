"""The simulator: the schedulers, the loop and the judge that run live, in virtual time."""
