"""The command line of the ML-GPU scheduler, for work that needs no cell."""
