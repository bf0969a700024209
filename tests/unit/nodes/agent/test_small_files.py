"""Small files: whole or not there."""

import os
from pathlib import Path

import pytest

from omega.nodes.agent.small_files import BYTES_MAX, read_small, remove_small, write_small


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


def test_what_is_left_of_a_write_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "record.new").write_text("of a writer that was killed")
    write_small(tmp_path / "record", "after")

    assert "after" == read_small(tmp_path / "record")
    assert ["record"] == os.listdir(tmp_path)


def test_small_things_are_removed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("small")
    (tmp_path / "empty").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run/exit").write_text("0\n")
    (tmp_path / "link").symlink_to(tmp_path)

    assert all(remove_small(tmp_path / name, ["exit", "shell"]) for name in os.listdir(tmp_path))
    assert [] == os.listdir(tmp_path)


def test_what_may_take_long_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(BYTES_MAX + 1))
    (tmp_path / "full").mkdir()
    (tmp_path / "full/of").write_text("something else")
    (tmp_path / "deep/exit/down").mkdir(parents=True)

    for name in ("large", "full", "deep", "nothing"):
        assert not remove_small(tmp_path / name, ["exit"])
    assert (tmp_path / "deep/exit/down").is_dir()
    assert {"large", "full", "deep"} == set(os.listdir(tmp_path))


def test_what_a_link_leads_to_stays(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/exit").write_text("of others")
    (tmp_path / "run").symlink_to(tmp_path / "other")

    assert remove_small(tmp_path / "run", ["exit"])
    assert "of others" == (tmp_path / "other/exit").read_text()
