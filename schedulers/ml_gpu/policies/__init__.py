"""Policies: from a Problem to an Allocation, one module an idea."""
