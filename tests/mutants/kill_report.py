"""A pytest plugin that writes each failure to a file, for the process that started the tests.

pytest -p tests.mutants.kill_report --kill-report FILE
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
    """`setup`, `call` or `teardown`; `collect` if the file could not be imported."""
    message: str


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the file that failures are written to."""
    parser.addoption("--kill-report", type=Path, required=True)


class FailureReporter:
    """Writes each failure as a line of JSON."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write a test that failed."""
        if report.failed:
            self._write(report.nodeid, report.when, report.longrepr)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Write a file that could not be imported."""
        if report.failed:
            self._write(report.nodeid, "collect", report.longrepr)

    def _write(self, test: str, when: str, what: object) -> None:
        crash = getattr(what, "reprcrash", None)
        message = str(getattr(crash, "message", what)).strip()
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(Failure(test, when, message))) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to test an omega that is not of the same tree as the tests."""
    here = Path(omega.__file__)
    if not here.is_relative_to(config.rootpath):
        raise pytest.UsageError(f"omega is imported from {here.parent}, not from this tree")
    config.pluginmanager.register(FailureReporter(config.getoption("--kill-report")))


def first_failure(path: Path) -> Failure | None:
    """Return the first failure of the file; None if there is none."""
    if not path.exists():
        return None
    return Failure(**json.loads(path.read_text(encoding="utf-8").splitlines()[0]))
