"""A store that records obeys the law for stores, and what it records is judged alike again."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from omega.clock import ManualClock
from omega.framework.recording import Recording
from omega.reports.replay import replay
from omega.store.memory.store import MemoryStore
from omega.store.protocols import Store
from omega.store.saved.recorded import RecordedCommit
from omega.store.saved.recordings import RecordingFile, recorded_commits
from omega.testing.contracts import StoreContract


class TestRecordedStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        """Yield a store that records; then judge again what was recorded."""
        kept: list[RecordedCommit] = []
        memory = MemoryStore(ManualClock(now=1_000_000.0))
        yield Recording(cast(Store, memory), lambda: 0, kept.append).store
        file = RecordingFile(tmp_path / "all", kind="batch", replica="0", began_ms=0)
        for commit in kept:
            file.write(commit)
        file.close()

        report = replay(recorded_commits(tmp_path / "all"))

        assert (len(kept), 0) == (report.commits + report.without_facts, report.differ)
