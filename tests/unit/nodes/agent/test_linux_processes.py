"""Looks at processes while others begin and end."""

import os

import pytest

from omega.nodes.agent import linux_processes
from omega.nodes.agent.linux_processes import LISTINGS_MAX, LinuxProcess, all_processes


class Proc:
    """A table of processes in which each starts its successor and ends just before it is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, last: int) -> None:
        self.running, self.last = 10, last
        self.listings = 0
        monkeypatch.setattr(os, "listdir", self._names)
        monkeypatch.setattr(linux_processes, "process_of", self._read)

    def _names(self, folder: str) -> list[str]:
        assert "/proc" == folder
        self.listings += 1
        return [str(self.running), "self"]

    def _read(self, pid: int) -> LinuxProcess | None:
        if pid < self.last:
            self.running = pid + 1
            return None
        return LinuxProcess(pid, "S", parent=1, session=9, ticks=pid, rss_bytes=0)


def test_a_child_that_no_listing_had_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    Proc(monkeypatch, last=13)

    assert [13] == list(all_processes())


def test_processes_that_fork_for_ever_do_not_hold_a_look_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proc = Proc(monkeypatch, last=10**6)

    assert {} == all_processes()
    assert LISTINGS_MAX == proc.listings
