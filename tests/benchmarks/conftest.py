"""The benchmarks' command line, run inside the test's own process against the test's own server."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Ran:
    """What a benchmark came to."""

    code: int
    document: dict[str, Any]
    said: str
    picture: bytes

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The document's rows."""
        return list(self.document["rows"])


Bench = Callable[..., Ran]


@pytest.fixture
def bench(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Bench:
    """Run a benchmark at toy size; draw its picture from the document that it wrote."""
    # Here, and not above: they take seconds to load, and most runs have none of their tests.
    from benchmarks.__main__ import main  # noqa: PLC0415
    from benchmarks.documents import read  # noqa: PLC0415

    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("OMEGA_DATA_DIR", str(tmp_path))
    picture, document = tmp_path / "picture.png", tmp_path / "document.json"

    def run(*arguments: str) -> Ran:
        capsys.readouterr()
        code: object = 0
        try:
            main(["run", *arguments, "--smoke", "--json", "-"])
        except SystemExit as end:
            code = end.code
        said = capsys.readouterr()
        assert not code, said.err
        document.write_text(said.out)
        benchmark, findings = read(document)
        benchmark.draw(findings).save(picture)
        return Ran(0, json.loads(said.out), said.err, picture.read_bytes())

    return run


@pytest.fixture
def bench_on_server(bench: Bench, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The same, with databases beside the test's own, of which none may be left."""
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)

    def run(*arguments: str) -> Ran:
        before = databases(database_url)
        ran = bench(*arguments)
        assert before == databases(database_url)
        return ran

    return run


def databases(url: str) -> set[str]:
    """Name the databases that benchmarks have made beside this one."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT datname FROM pg_database"
            " WHERE starts_with(datname, current_database() || '_bench')"
        )
        return {name for (name,) in found}


def a_checkout(folder: Path) -> Path:
    """Make a folder with an interpreter where a checkout has one; it runs this checkout's code."""
    python = folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return folder
