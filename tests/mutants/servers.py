"""Servers for runs of tests, one for each that goes on at a time: roles are a whole server's."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import mkdtemp

import typer

from tests.fixtures.servers import GIVEN, KINDS, stop_all, url_of


@contextmanager
def servers(number: int) -> Iterator[list[str]]:
    """Yield the URLs of so many servers; of the one that the environment names, if it does."""
    if GIVEN in os.environ:
        yield [os.environ[GIVEN]]
        return
    kind = next((kind for kind, server in KINDS.items() if server.missing() is None), None)
    if kind is None:
        raise typer.BadParameter("there is no Postgres here: install omega-scheduler[embedded]")
    with ExitStack() as started:
        yield [started.enter_context(_one_server(kind)) for _ in range(number)]


@contextmanager
def _one_server(kind: str) -> Iterator[str]:
    run = Path(mkdtemp(prefix="omega-"))
    run.chmod(0o755)  # as root, the servers are other users'
    try:
        yield url_of(kind, run)
    finally:
        stop_all(run)
        shutil.rmtree(run)
