"""What the benchmarks say to Postgres past the store; here, and nowhere else, they hold SQL."""
