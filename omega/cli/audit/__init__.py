"""`omega audit`: who holds more than a policy allows, after the fact."""
