"""Which pending job is placed next."""
