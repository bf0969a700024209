"""Rows of `omega top` that are alike, lack a value, or cannot be read."""

from typing import Any

from omega.cell.view import View
from omega.clock import ManualClock
from omega.metrics.fold import SchedulerFold
from omega.reports.machine_lines import machine_lines
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_cell
from tests.fixtures.terminals import Watching
from tests.unit.cli.top.test_screens import Absent, a_store, run


def test_schedulers_of_one_name_are_all_listed() -> None:
    """Two logins may report under one name, and a kind may have a space."""
    store = a_store()
    for kind, replica in (("a b", "c"), ("a", "b c")):
        store.report(kind, replica, pid=1, facts=SchedulerFold(ManualClock()).facts())

    async def body(it: Watching) -> None:
        assert ["a b c", "a b c", "batch 0", "batch 1"] == sorted(it.column("scheduler"))

    run(body, store)


def test_an_error_that_nobody_expects_is_told_without_what_it_says() -> None:
    class Broken(Absent):
        def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of any method
            if self.is_away:
                raise RuntimeError("postgresql://me:secret@host")
            return super().__getattr__(name)

    store = Broken(a_store())

    async def body(it: Watching) -> None:
        store.is_away = True
        await it.look()
        assert "RuntimeError" in it.text("#status")
        assert "secret" not in it.text("#status")
        assert it.app.is_running

    run(body, store)


def test_machines_without_gpus_come_last_in_both_directions() -> None:
    store = MemoryStore(ManualClock())
    store.add_machines(a_cell(1))
    store.add_machines(a_cell(1, gpus=1, first=2))
    view = View(store.snapshot())

    for descending in (False, True):
        lines, found = machine_lines(
            view, state=None, is_named=None, order="gpu", descending=descending, lines_max=1
        )
        assert ([2], 2) == ([line.id for line in lines], found)
