"""The benchmarks' own SQL, which bypasses the store; no other folder of theirs holds SQL."""
