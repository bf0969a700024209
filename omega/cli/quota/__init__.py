"""`omega quota`: limits on what tenants and kinds of schedulers hold."""
