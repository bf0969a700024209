"""What `omega replay` prints, from files alone."""

from pathlib import Path

import numpy as np
import pytest

from omega.cell.commit_context import CommitContext
from omega.framework.recording import without_tokens
from omega.model.arrays import integers
from omega.reports import replay as reports
from omega.store.saved.recorded import Against, RecordedCommit
from omega.store.saved.recordings import RecordingFile, recorded_commits
from omega.testing.builders import a_claim, a_job, a_transaction, claims_of_job, some_rows
from tests.fixtures.command_line import Omega, document
from tests.unit.cli.hostile_texts import HOSTILE, raw_in, without_styles

ESCAPE = HOSTILE["clears the screen"]


def a_recording(path: Path, *verdicts: int, replica: str = "a") -> Path:
    """Write one-claim transactions that would be granted, and were judged so; return where."""
    file = RecordingFile(path, kind="batch", replica=replica, began_ms=0)
    for verdict in verdicts:
        job = a_job(job=1)
        transaction = without_tokens(a_transaction(claims_of_job(job, a_claim())))
        context = CommitContext(
            lease_held=np.ones(1, dtype=np.bool_),
            minimum=integers([0]),
            placed=integers([0]),
            precedence=integers([0]),
            unplaced=np.ones(1, dtype=np.bool_),
        )
        file.write(
            RecordedCommit(
                at_ms=0,
                transaction=transaction,
                verdicts=np.array([verdict], dtype=np.int8),
                machine=integers([1]),
                evicted=((9, 4),) if verdict == 0 and replica != "a" else (),
                against=Against(some_rows(), context),
            )
        )
    file.close()
    return path


def test_several_files_are_judged_together(omega: Omega, tmp_path: Path) -> None:
    files = [a_recording(tmp_path / "1", 0, 0), a_recording(tmp_path / "2", 0)]

    assert "3 transactions with 3 claims judged again; 0 differ.\n" == omega("replay", *files).out


def test_of_many_that_differ_the_first_are_shown(omega: Omega, tmp_path: Path) -> None:
    file = a_recording(tmp_path / "1", *[2] * 12)

    ran = omega("replay", file)

    assert 1 == ran.code
    assert "12 differ." in ran.out
    assert "overcommit, now accepted" in " ".join(ran.out.split())
    assert "and 2 transactions more" in ran.out


def test_what_is_listed_is_bounded_and_all_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "NAMES_TOLD_MAX", 3)
    file = a_recording(tmp_path / "1", *[2] * 12)

    report = reports.replay(recorded_commits(file))

    assert (12, 3) == (report.differ, len(report.told))
    assert {("overcommit", "accepted"): 12} == report.verdicts


def test_other_evictions_are_a_difference_and_names_are_printable(
    omega: Omega, tmp_path: Path
) -> None:
    file = a_recording(tmp_path / "1", 0, replica=ESCAPE)

    ran = omega("replay", file)
    told = document(omega("replay", file, "--json", "-")._replace(code=0))

    assert 1 == ran.code
    assert "0 tasks evicted, 1 then" in " ".join(ran.out.split())
    assert [] == raw_in(without_styles(ran.out))
    assert [([[9, 4]], [])] == [(it["evicted_was"], it["evicted_now"]) for it in told["rows"]]
