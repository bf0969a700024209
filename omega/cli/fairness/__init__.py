"""`omega fairness`: the shares of tenants beside what is fair."""
