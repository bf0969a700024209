"""Schedulers that come with omega, written on its public face only."""
