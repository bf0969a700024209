"""Benchmarks: what commits, views and placement cost, and how much schedulers conflict."""
