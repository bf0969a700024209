"""A scheduler that records goes on when its file cannot be written any more."""

import os
from pathlib import Path
from typing import cast

import pytest

from omega.cli.scheduler.record import recorded
from omega.clock import ManualClock
from omega.errors import BadInput
from omega.events import Event, RecordingStopped
from omega.metrics.fold import counts_of
from omega.store.memory.store import MemoryStore
from omega.store.protocols import Store
from omega.store.saved.recordings import recorded_commits
from omega.testing.builders import a_spec
from omega.testing.steps import add_a_cell, claim, lease_all

NAME = ("batch", "0")


def a_store() -> Store:
    store = MemoryStore(ManualClock(now=1_000_000.0))
    add_a_cell(store, 1)
    store.submit([a_spec(3)])
    return cast(Store, store)


def test_without_a_file_the_store_is_the_store() -> None:
    store = a_store()

    with recorded(store, None, NAME, ManualClock(), print) as same:
        assert store is same


def test_what_is_committed_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a"

    with recorded(a_store(), path, NAME, ManualClock(), print) as store:
        (job,) = lease_all(store)
        claim(store, job, [0], [1])
        claim(store, job, [1], [1])

    assert [[0], [1]] == [it.transaction.claims.task.tolist() for it in recorded_commits(path)]


def test_a_file_that_is_there_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("mine")

    with (
        pytest.raises(BadInput, match="it is there, and is not overwritten"),
        recorded(a_store(), path, NAME, ManualClock(), print),
    ):
        pass

    assert "mine" == path.read_text()


def test_a_full_disk_ends_the_recording_and_not_the_scheduler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[Event] = []
    with recorded(a_store(), tmp_path / "a", NAME, ManualClock(), events.append) as store:
        (job,) = lease_all(store)
        claim(store, job, [0], [1])

        def full(*_: object) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", full)
        assert claim(store, job, [1], [1]).accepted.all()
        assert claim(store, job, [2], [1]).accepted.all()

    assert [RecordingStopped("No space left on device")] == events
    assert {"recordings_stopped": 1} == counts_of(events[0])
    monkeypatch.undo()
    assert 1 == len(list(recorded_commits(tmp_path / "a", is_unfinished=True)))


def test_a_line_that_a_full_disk_has_cut_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write = tmp_path / "a", os.write
    with recorded(a_store(), path, NAME, ManualClock(), lambda _: None) as store:
        (job,) = lease_all(store)
        claim(store, job, [0], [1])
        whole = path.read_bytes()

        def nearly_full(file: int, text: bytes) -> int:
            if len(text) <= 10:
                raise OSError(28, "No space left on device")
            return write(file, text[:-10])

        monkeypatch.setattr(os, "write", nearly_full)
        claim(store, job, [1], [1])
        monkeypatch.undo()  # somebody makes room: what comes now is not written either
        claim(store, job, [2], [1])

    assert whole == path.read_bytes()
    with pytest.raises(BadInput, match="could not write more"):
        list(recorded_commits(path))
    assert 1 == len(list(recorded_commits(path, is_unfinished=True)))


def test_a_disk_that_is_full_from_the_start_is_one_sentence_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)

    with (
        pytest.raises(BadInput, match="it cannot be written: No space left on device"),
        recorded(a_store(), tmp_path / "a", NAME, ManualClock(), print),
    ):
        pass

    assert [] == list(tmp_path.iterdir())


def test_a_transaction_that_no_line_can_hold_ends_the_recording_and_not_the_scheduler(
    tmp_path: Path,
) -> None:
    events: list[Event] = []
    with recorded(a_store(), tmp_path / "a", NAME, ManualClock(), events.append) as store:
        (job,) = lease_all(store)
        granted = claim(store, job, [0], [1])
        vars(store)["_known"][job.id].placed = -1

        assert granted.accepted.all()
        assert claim(store, job, [1], [1]).accepted.all()

    (stopped,) = events
    assert isinstance(stopped, RecordingStopped)
    assert "a transaction is not of the form of recordings" in stopped.why
