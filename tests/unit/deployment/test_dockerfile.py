"""The image holds the pins and the code, and runs as nobody in particular."""

import re

import pytest

from tests.architecture.tree import ROOT

INSTRUCTION = re.compile(r"^([A-Z]+) (.*)$", re.MULTILINE)


@pytest.fixture
def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions, each with its first line's rest."""
    return INSTRUCTION.findall((ROOT / "Dockerfile").read_text())


def copied(instructions: list[tuple[str, str]]) -> set[str]:
    """Return what is copied from the project."""
    sources = [rest.split()[:-1] for name, rest in instructions if name == "COPY"]
    return {source for some in sources for source in some}


def test_the_base_image_is_pinned_to_a_version(instructions: list[tuple[str, str]]) -> None:
    assert [("FROM", "python:3.13-slim")] == [one for one in instructions if one[0] == "FROM"]


def test_it_runs_as_a_user_without_rights(instructions: list[tuple[str, str]]) -> None:
    last_user = [rest for name, rest in instructions if name == "USER"][-1]
    after = [name for name, _ in instructions][::-1].index("USER")

    assert last_user not in {"root", "0"}
    assert "RUN" not in [name for name, _ in instructions[len(instructions) - after :]]


def test_everything_is_installed_from_the_pins(instructions: list[tuple[str, str]]) -> None:
    installs = [rest for name, rest in instructions if name == "RUN" and "pip install" in rest]

    assert "pip install --no-deps -r requirements.txt" == installs[0]
    assert all("--no-deps" in install for install in installs)


def test_the_context_is_what_is_copied(instructions: list[tuple[str, str]]) -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    let_through = {line.removeprefix("!") for line in lines if line.startswith("!")}

    assert "*" in lines
    assert let_through == copied(instructions)
    assert all((ROOT / name).exists() for name in let_through)
