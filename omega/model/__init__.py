"""The nouns of a cell: resources, machines, jobs, claims, outcomes; frozen values and arrays."""
