"""Measures as folds over events."""
