"""`omega sim run` says the same of a compiled run as of one that is not."""

from pathlib import Path

import pytest

from omega.sim import compilation as sim_compiled
from tests.fixtures.command_line import Omega, document
from tests.fixtures.job_lists import CELL


def test_a_compiled_run_is_told_as_an_uncompiled_one(
    omega: Omega, jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("sim", "run", "--jobs", jobs, *CELL, "--hours", 0.03, "--json", "-")
    documents = [document(omega(*options, *more)) for more in ((), ("--compiled",))]
    monkeypatch.setattr(sim_compiled, "FROM_JOBS", 1)
    documents += [document(omega(*options, *more)) for more in ((), ("--no-compiled",))]

    assert [False, True, True, False] == [one["summary"].pop("compiled") for one in documents]
    for one in documents:
        del one["summary"]["wall_s"]
    told = [[one[part] for part in ("parameters", "rows", "summary")] for one in documents]
    assert 4 * [told[0]] == told
