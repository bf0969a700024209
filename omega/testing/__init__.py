"""What authors of schedulers and stores test with: builders, strategies, a slow twin, contracts."""
