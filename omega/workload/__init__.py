"""Workloads: machines, the tasks that run on them at the start, and jobs that arrive."""
