"""Small files: whole or not there."""

import os
from pathlib import Path

import pytest

from omega.nodes.agent.small_files import read_small, write_small


def test_a_disk_that_takes_a_part_at_a_time_gets_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, text: write(file, bytes(text)[:3]))
    write_small(tmp_path / "record", "a record, longer than three bytes")

    assert "a record, longer than three bytes" == read_small(tmp_path / "record")
    assert ["record"] == [path.name for path in tmp_path.iterdir()]


def test_a_disk_that_is_full_leaves_the_earlier_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_small(tmp_path / "record", "before")

    def is_full(file: int, text: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", is_full)
    with pytest.raises(OSError, match="No space"):
        write_small(tmp_path / "record", "after")

    assert "before" == read_small(tmp_path / "record")
