"""A client that commits in omega's ways and in all others, for `python -m`."""

from benchmarks.client import Client, serve
from benchmarks.postgres.baselines import BASELINES

if __name__ == "__main__":
    serve(Client(BASELINES))
