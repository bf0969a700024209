"""Every command that a document shows can be typed."""

from collections.abc import Iterator

import pytest

from omega.cli.main import GUIDE
from omega.config import environment_names
from tests.architecture.tree import ROOT, Source
from tests.docs.commands import problem_with
from tests.docs.documents import blocks, documents
from tests.docs.test_references import ENVIRONMENT


def commands(source: Source) -> Iterator[tuple[str, str]]:
    """Yield each command of a document's shell blocks, and where it stands."""
    for block in blocks(source, "sh", "bash", "console", "shell"):
        for number, line in enumerate(block.text.splitlines(), block.line + 1):
            if line.strip():
                yield f"{source.path}:{number}", line.strip()


def wrong(source: Source) -> list[str]:
    """Complain of each command that would fail before it has done anything."""
    found = [(where, problem_with(line)) for where, line in commands(source)]
    return [f"{where}: {problem}" for where, problem in found if problem]


def test_every_command_of_a_document_can_be_typed() -> None:
    assert [] == [complaint for source in documents() for complaint in wrong(source)]
    assert len([line for source in documents() for _, line in commands(source)]) > 15


def test_the_guide_of_the_command_line_can_be_typed() -> None:
    lines = [line.strip() for line in GUIDE.splitlines() if line.startswith("  ")]

    assert lines
    assert [] == [problem for line in lines if (problem := problem_with(line))]


def test_the_comments_of_the_compose_file_can_be_typed() -> None:
    comments = (ROOT / "docker-compose.yml").read_text().splitlines()
    lines = [line.removeprefix("#   ") for line in comments if line.startswith("#   ")]

    assert lines
    assert [] == [problem for line in lines if (problem := problem_with(line))]


@pytest.mark.parametrize(
    "line",
    [
        "omega dbb init",
        "omega db",
        "omega db init --jsn x",
        "omega jobs --state happy",
        "omega job",
        "omega scheduler run",
        "omega node simulate --speedup fast",
        "make tset",
        "make demo tset",
        "python -m omega.cli jobz",
        "python -m omega",
        "docker compose run --rm nodes omega dbb init",
        "omga db init",
    ],
)
def test_a_command_that_cannot_be_typed_is_found(line: str) -> None:
    assert wrong(Source("a.md", f"Do:\n\n```sh\n{line}\n```\n"))


@pytest.mark.parametrize(
    "line",
    [
        "omega db init  # and a comment",
        "omega scheduler run batch --replica a &",
        "OMEGA_LEASE_MS=20000 omega status --json -",
        'make demo ARGS="--seconds 10"',
        "python -m omega.cli db verify",
        "docker compose up --detach",
        "# only a comment",
    ],
)
def test_a_command_that_can_be_typed_is_let_through(line: str) -> None:
    assert [] == wrong(Source("a.md", f"Do:\n\n```sh\n{line}\n```\n"))


def test_every_name_of_the_environment_in_a_document_is_known() -> None:
    named = {name for source in documents() for name in ENVIRONMENT.findall(source.text)}

    assert named
    assert set() == named - environment_names()
