"""Looks at processes while others begin and end, and looks that pass processes over."""

import os
from dataclasses import dataclass, field

import pytest

from omega.nodes.agent import process_table
from omega.nodes.agent.linux_processes import LinuxProcess
from omega.nodes.agent.process_table import FORKS_MAX, LISTINGS_MAX, GivenPids, ProcessTable


def a_process(pid: int, ticks: int) -> LinuxProcess:
    return LinuxProcess(pid, "S", parent=1, session=9, ticks=ticks, rss_bytes=0)


class Forking:
    """Processes of which each starts its successor and ends just before it is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, last: int) -> None:
        self.running, self.last = 10, last
        self.listings = 0
        monkeypatch.setattr(os, "listdir", self._names)
        monkeypatch.setattr(process_table, "process_of", self._read)

    def _names(self, folder: str) -> list[str]:
        assert "/proc" == folder
        self.listings += 1
        return [str(self.running), "self"]

    def _read(self, pid: int) -> LinuxProcess | None:
        if pid < self.last:
            self.running = pid + 1
            return None
        return a_process(pid, pid)


@dataclass
class Kernel:
    """Processes that stay, by pid, and what of them was read."""

    processes: dict[int, LinuxProcess] = field(default_factory=dict)
    given: GivenPids | None = GivenPids(forks=1_000, last=20)  # noqa: RUF009 - frozen
    read: list[int] = field(default_factory=list)

    def forked(self, last: int, forks: int = 1) -> None:
        assert self.given is not None
        self.given = GivenPids(self.given.forks + forks, last)

    def process_of(self, pid: int) -> LinuxProcess | None:
        self.read.append(pid)
        return self.processes.get(pid)

    def looks(self, table: ProcessTable, since: int, *besides: tuple[int, int]) -> list[int]:
        """Return who is read in a look."""
        self.read.clear()
        found = table.look(since, set(besides))
        assert self.read == list(found)
        return self.read


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    kernel = Kernel({5: a_process(5, ticks=50), 20: a_process(20, ticks=200)})
    monkeypatch.setattr(os, "listdir", lambda _: [str(pid) for pid in kernel.processes])
    monkeypatch.setattr(process_table, "process_of", kernel.process_of)
    monkeypatch.setattr(GivenPids, "now", lambda: kernel.given)
    return kernel


@pytest.fixture
def table(kernel: Kernel) -> ProcessTable:
    """A table that has looked once."""
    table = ProcessTable()
    assert [5, 20] == kernel.looks(table, 300)
    return table


def test_a_child_that_no_listing_had_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    Forking(monkeypatch, last=13)

    assert [13] == list(ProcessTable().look(0))


def test_processes_that_fork_for_ever_do_not_hold_a_look_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forking = Forking(monkeypatch, last=10**6)

    assert {} == ProcessTable().look(0)
    assert LISTINGS_MAX == forking.listings


def test_who_began_before_is_passed_over_but_not_who_is_new_or_asked_for(
    kernel: Kernel, table: ProcessTable
) -> None:
    kernel.processes[21] = a_process(21, ticks=210)
    kernel.forked(last=21)

    assert [20, 21] == kernel.looks(table, 200)
    assert [] == kernel.looks(table, 300)
    assert [5] == kernel.looks(table, 300, (5, 50))
    assert [5, 20, 21] == kernel.looks(table, 0)
    assert {(5, 50), (20, 200), (21, 210)} == table.identities


def test_who_has_ended_is_dropped(kernel: Kernel, table: ProcessTable) -> None:
    del kernel.processes[5]
    table.look(300)

    assert {(20, 200)} == table.identities


@pytest.mark.parametrize("last", [5, 6, 19])
def test_a_pid_that_was_given_out_again_is_read_again(
    kernel: Kernel, table: ProcessTable, last: int
) -> None:
    """The kernel has come to the highest pid and begun again at the lowest."""
    kernel.processes[5] = a_process(5, ticks=210)
    kernel.forked(last=last)

    assert [5] == kernel.looks(table, 205)


def test_after_many_forks_or_without_a_count_all_are_read_again(
    kernel: Kernel, table: ProcessTable
) -> None:
    kernel.forked(last=20, forks=FORKS_MAX)
    assert [] == kernel.looks(table, 300)
    kernel.forked(last=20, forks=FORKS_MAX + 1)
    assert [5, 20] == kernel.looks(table, 300)
    kernel.given = None
    assert [5, 20] == kernel.looks(table, 300)


def test_the_kernel_tells_how_far_it_is() -> None:
    before = GivenPids.now()
    child = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(child, 0)
    after = GivenPids.now()

    assert before is not None
    assert after is not None
    assert before.forks < after.forks
    assert after.may_hold(child, before)
