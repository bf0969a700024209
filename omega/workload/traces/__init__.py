"""Published traces as workloads: one loader a trace, found by the files in a folder."""
