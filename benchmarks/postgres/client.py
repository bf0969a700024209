"""A client that commits in Omega's ways and by all baselines, run by `python -m`."""

from benchmarks.client import Client, serve
from benchmarks.postgres.baselines import BASELINES

if __name__ == "__main__":
    serve(Client(BASELINES))
