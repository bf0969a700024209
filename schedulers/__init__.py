"""Schedulers that come with omega; they import only its public packages."""
