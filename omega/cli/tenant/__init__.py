"""`omega tenant`: weights and parents of tenants."""
