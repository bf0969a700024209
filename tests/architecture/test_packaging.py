"""What is declared, what is pinned and what `make` installs are the same thing."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tests.architecture.tree import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PIN = re.compile(r"([a-z0-9-]+)==([0-9][0-9a-z.]*)")
FILES = ("requirements.txt", "requirements-dev.txt")
SERVICE = "requirements-service.txt"


def lines_of(file: str) -> list[str]:
    """Return what a requirements file says, without its comments."""
    return [
        line for line in (ROOT / file).read_text().splitlines() if line and not line.startswith("#")
    ]


def pins() -> dict[str, Version]:
    """Return the exact version of each package that the tests run with."""
    matches = [PIN.fullmatch(line) for file in FILES for line in lines_of(file)]
    return {match[1]: Version(match[2]) for match in matches if match}


def declared() -> list[Requirement]:
    """Return all that pyproject.toml asks for, extras included, but for the project itself."""
    extras = PROJECT["optional-dependencies"].values()
    texts = [*PROJECT["dependencies"], *(text for extra in extras for text in extra)]
    found = [Requirement(text) for text in texts]
    return [requirement for requirement in found if requirement.name != PROJECT["name"]]


@pytest.mark.parametrize("file", [*FILES, SERVICE])
def test_a_requirement_is_a_name_and_a_version(file: str) -> None:
    """No index, no address, no option: where packages come from is the installer's to say."""
    strange = [line for line in lines_of(file) if not PIN.fullmatch(line)]

    assert strange == (["-r requirements.txt"] if file == "requirements-dev.txt" else [])


@pytest.mark.parametrize("requirement", declared(), ids=str)
def test_what_is_declared_is_pinned_within_its_range(requirement: Requirement) -> None:
    assert requirement.name in pins()
    assert pins()[requirement.name] in requirement.specifier


@pytest.mark.parametrize("requirement", declared(), ids=str)
def test_a_range_has_both_ends(requirement: Requirement) -> None:
    operators = {specifier.operator for specifier in requirement.specifier}

    assert {">=", "<"} == operators


def test_the_runtime_pins_hold_no_tools() -> None:
    runtime = "\n".join(lines_of("requirements.txt"))
    tools = [Requirement(text).name for text in PROJECT["optional-dependencies"]["dev"]]

    assert [] == [name for name in tools if f"{name}==" in runtime and name != "packaging"]


def test_a_service_runs_with_the_versions_of_the_tests() -> None:
    runtime = lines_of("requirements.txt")
    services = lines_of(SERVICE)
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["ml-gpu"]]
    named = {line.partition("==")[0] for line in services}

    assert [] == [line for line in services if line not in runtime]
    assert [] == [text for text in wanted if Requirement(text).name not in named]


def test_every_verb_is_listed_by_help() -> None:
    makefile = (ROOT / "Makefile").read_text()
    verbs = set(re.findall(r"^\.PHONY: (\S+)$", makefile, re.MULTILINE))
    described = set(re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE))

    assert verbs == described
    assert {"demo", "test", "help"} <= verbs
