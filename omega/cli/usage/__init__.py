"""`omega usage`: what tenants, jobs or kinds of schedulers used."""
