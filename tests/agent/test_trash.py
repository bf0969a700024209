"""What a task leaves behind is deleted, whatever it has made of it."""

import os
import tempfile
from pathlib import Path

import pytest

from omega.nodes.agent.trash import AT_ONCE_MAX, Trash
from tests.agent.waiting import until

NOBODY = 65_534


def tidy_until_idle(trash: Trash) -> None:
    """Tidy until no process deletes and nothing is left to be tried."""

    def is_idle() -> bool:
        trash.tidy()
        return trash._is_empty  # noqa: SLF001

    until(is_idle)


def test_what_is_thrown_away_is_deleted(tmp_path: Path) -> None:
    trash = Trash(tmp_path / ".trash")
    for number in range(AT_ONCE_MAX + 1):
        (tmp_path / f"{number}/in").mkdir(parents=True)
        trash.throw(tmp_path / str(number))
    tidy_until_idle(trash)
    assert [] == list((tmp_path / ".trash").iterdir())


def trash_of_read_only_folders(folder: Path) -> None:
    """Throw away, and delete, what its owner may neither write to nor read; not what is linked."""
    other = folder / "other"
    (other / "kept").mkdir(parents=True)
    other.chmod(0o500)
    for name in ("run", "dark"):
        (folder / name / "in/deep").mkdir(parents=True)
        (folder / name / "in/link").symlink_to(other)
        (folder / name / "in").chmod(0o500)
    (folder / "run").chmod(0o500)
    (folder / "dark").chmod(0)
    (folder / "link").symlink_to(other)
    trash = Trash(folder / ".trash")
    for name in ("run", "dark", "link"):
        trash.throw(folder / name)
    tidy_until_idle(trash)
    assert ["kept"] == os.listdir(other)
    assert 0o500 == other.stat().st_mode & 0o777
    assert {".trash", "other"} == set(os.listdir(folder))
    assert [] == os.listdir(folder / ".trash")


def test_folders_that_their_owner_may_not_write_to_are_deleted() -> None:
    """As a user other than root, whom no mode of a folder stops."""
    with tempfile.TemporaryDirectory() as name:
        if os.geteuid() != 0:
            trash_of_read_only_folders(Path(name))
            return
        os.chown(name, NOBODY, NOBODY)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                trash_of_read_only_folders(Path(name))
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert 0 == os.waitstatus_to_exitcode(status)


def test_what_cannot_be_deleted_is_said_once_and_holds_up_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_but_one = 'case $1 in */0) shift ;; esac; exec rm -rf -- "$@"'
    monkeypatch.setattr("omega.nodes.agent.trash.DELETE", all_but_one)
    trash = Trash(tmp_path / ".trash")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        trash.throw(tmp_path / name)
    errors = []

    def is_idle() -> bool:
        try:
            trash.tidy()
        except OSError as error:
            errors.append(error.strerror)
        return trash._is_empty  # noqa: SLF001

    until(is_idle)
    (tmp_path / "c").mkdir()
    trash.throw(tmp_path / "c")
    until(is_idle)
    assert [f"some stay in {str(tmp_path / '.trash')!r}"] == errors
    assert ["0"] == os.listdir(tmp_path / ".trash")
