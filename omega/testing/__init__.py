"""Tools for tests of schedulers and stores: builders, strategies, a slow twin and contracts."""
