"""A pytest plugin that tells the process which began the tests what the first failure was.

pytest -p tests.mutants.witness --witness FILE
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

import omega


@dataclass(frozen=True)
class Failure:
    """A test that failed."""

    test: str
    when: str
    """`setup`, `call` or `teardown`; `collect` if it could not even be read."""
    said: str


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the file that failures are written to."""
    parser.addoption("--witness", type=Path, required=True)


class Witness:
    """Notes what fails, a line each."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that failed."""
        if report.failed:
            self._note(report.nodeid, report.when, report.longrepr)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that could not be read."""
        if report.failed:
            self._note(report.nodeid, "collect", report.longrepr)

    def _note(self, test: str, when: str, what: object) -> None:
        crash = getattr(what, "reprcrash", None)
        said = str(getattr(crash, "message", what)).strip()
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(Failure(test, when, said))) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to test anything but the code that lies beside the tests."""
    here = Path(omega.__file__)
    if not here.is_relative_to(config.rootpath):
        raise pytest.UsageError(f"omega is imported from {here.parent}, not from this tree")
    config.pluginmanager.register(Witness(config.getoption("--witness")))


def first_failure(path: Path) -> Failure | None:
    """Return what was noted first."""
    if not path.exists():
        return None
    return Failure(**json.loads(path.read_text(encoding="utf-8").splitlines()[0]))
