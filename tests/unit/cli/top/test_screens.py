"""`omega top` by keys, on a store in memory: order, filters, cursors, and what cannot be read."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from textual.strip import Strip

from omega.cli.top.app import REST
from omega.cli.top.columns import COLUMNS
from omega.cli.top.table import TableScreen
from omega.clock import ManualClock
from omega.errors import StoreUnavailable
from omega.metrics.fold import SchedulerFold
from omega.model.machines import MachineState, Snapshot
from omega.reports.machine_lines import ORDERS
from omega.reports.top import ROWS_MAX, Tab
from omega.store.memory.store import MemoryStore
from omega.store.protocols import ReaderStore
from omega.store.status import JobStatus, ProcessReport
from omega.testing.builders import a_cell, a_spec
from omega.testing.steps import a_running_job
from tests.fixtures.terminals import NARROW, WIDE, Watching, watching
from tests.unit.cli.hostile_texts import LONG, LONG_AND_UNPRINTABLE, groups, raw_in

SIZES = {"wide": WIDE, "narrow": NARROW}


class Absent:
    """A store that may be away, and counts its calls."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.is_away = False
        self.reads = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of any method
        self.reads += name == "reports"
        if self.is_away:
            raise StoreUnavailable("gone \x1b[2Jfishing")
        return getattr(self._store, name)


def a_store(clock: ManualClock | None = None) -> MemoryStore:
    store = MemoryStore(clock or ManualClock(now=1_000.0))
    store.add_machines(a_cell(3, cpu_milli=4_000, gpus=1))
    a_running_job(store, a_spec(2, name="train", tenant="ann"), [1, 2], cpu_milli=1_000)
    a_running_job(store, a_spec(name="serve", tenant="bob"), [2], cpu_milli=2_500)
    store.submit([a_spec(name="train-2", scheduler="service"), a_spec(name="x")])
    store.set_state(store.snapshot().rows.id[2:], MachineState.DRAINING)
    for replica in ("0", "1"):
        store.report("batch", replica, pid=1, facts=SchedulerFold(ManualClock()).facts())
    return store


def run(
    body: Callable[[Watching], Awaitable[None]],
    store: object | None = None,
    **how: Any,  # noqa: ANN401 - of `watching`
) -> None:
    async def whole() -> None:
        async with watching(cast(ReaderStore, store or a_store()), **how) as watched:
            await body(watched)

    asyncio.run(whole())


@pytest.mark.parametrize("is_light", [False, True], ids=["dark", "light"])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_each_tab_has_its_rows(size: tuple[int, int], is_light: bool) -> None:  # noqa: FBT001 - light or dark
    async def body(it: Watching) -> None:
        assert ["batch 0", "batch 1"] == it.column("scheduler")
        await it.press("2")
        await it.look()
        assert ["4", "3", "2", "1"] == it.column("job")
        assert "2/2" in it.column("placed")
        await it.press("3")
        await it.look()
        assert ["machine-1", "machine-2", "machine-3"] == it.column("machine")
        assert ["25%", "88%", "0%"] == it.column("cpu")
        assert ["open", "open", "draining"] == it.column("state")
        assert it.text("#cell").startswith("3 machines, 1 closed")
        assert "2 running" in it.text("#queue")
        assert it.text("#status") == "3 machines"
        assert is_light == (it.app.theme == "textual-light")

    run(body, size=size, is_light=is_light)


def test_a_narrow_terminal_has_fewer_columns_and_a_wider_one_gets_them_back() -> None:
    async def body(it: Watching) -> None:
        few = it.titles()
        await it.pilot.resize_terminal(*WIDE)
        await it.settled()
        assert set(few) < set(it.titles())
        assert "tenant" in it.titles()

    run(body, size=NARROW, tab=Tab.JOBS)


def test_keys_choose_the_column_and_the_direction() -> None:
    async def body(it: Watching) -> None:
        assert "job ↓" in it.titles()
        await it.press("s")
        assert "name ↑" in it.titles()
        assert ["serve", "train", "train-2", "x"] == it.column("name")
        await it.press("r")
        assert ["x", "train-2", "train", "serve"] == it.column("name")
        await it.press("S")
        assert "job ↓" in it.titles()
        await it.press("S")
        assert "age ↓" in it.titles()

    run(body, tab=Tab.JOBS)


def test_titles_stand_above_their_columns_however_early_they_are_drawn() -> None:
    async def body(it: Watching) -> None:
        screen = it.app.screen
        assert isinstance(screen, TableScreen)
        screen.action_reverse()
        it.table.render_line(0)
        await it.settled()
        titles, *rows = (it.table.render_line(at) for at in range(4))
        for row in rows:
            assert columns_of(titles) == columns_of(row)

    run(body, tab=Tab.MACHINES)


def columns_of(line: Strip) -> list[int]:
    """Return which column each cell of a drawn line belongs to."""
    return [it.style.meta["column"] for it in line for _ in range(it.cell_length) if it.style]


def test_a_click_on_a_title_sorts_and_another_turns_it_round() -> None:
    async def body(it: Watching) -> None:
        for expected in (["88%", "25%", "0%"], ["0%", "25%", "88%"]):
            column = [str(each.key.value) for each in it.table.ordered_columns].index("cpu")
            widths = [each.get_render_width(it.table) for each in it.table.ordered_columns]
            await it.click("DataTable", offset=(sum(widths[:column]) + 2, 0))
            await it.look()
            assert expected == it.column("cpu")

    run(body, tab=Tab.MACHINES)


JOBS = {
    "train": ["train-2", "train"],
    "tenant=ann": ["train"],
    "state=pending": ["x", "train-2"],
    "kind=service": ["train-2"],
    " kind=batch  train ": ["train"],
    "tr in-": ["train-2"],
    "": ["x", "train-2", "serve", "train"],
}
MACHINES = {"state=draining": ["machine-3"], "NE-2": ["machine-2"], "state=gone": []}
SCHEDULERS = {"1": ["batch 1"], "kind=service": [], "state=running": ["batch 0", "batch 1"]}


@pytest.mark.parametrize(
    ("tab", "column", "filters"),
    [
        (Tab.JOBS, "name", JOBS),
        (Tab.MACHINES, "machine", MACHINES),
        (Tab.SCHEDULERS, "scheduler", SCHEDULERS),
    ],
)
def test_a_filter_narrows_a_tab(tab: Tab, column: str, filters: dict[str, list[str]]) -> None:
    async def body(it: Watching) -> None:
        for text, names in filters.items():
            await it.press("slash")
            await it.type(text)
            await it.look()
            assert names == it.column(column), text
            assert (f"filter: {text.strip()}" in it.text("#status")) == bool(text)

    run(body, tab=tab)


def test_a_filter_that_cannot_be_read_is_said_and_changes_nothing() -> None:
    async def body(it: Watching) -> None:
        before = it.rows()
        for text, said in (
            ("state=parkd", "did you mean 'parked'?"),
            ("user=ann", "none of state=, tenant=, kind="),
        ):
            await it.press("slash")
            await it.type(text)
            assert said in it.text("#status")
            await it.press("escape")
            assert before == it.rows()
            assert "4 jobs" == it.text("#status")

    run(body, tab=Tab.JOBS)


def test_the_cursor_stays_on_its_row_while_others_come() -> None:
    store = a_store()

    async def body(it: Watching) -> None:
        await it.press("down", "down")
        before = it.under_the_cursor()
        store.submit([a_spec(name="new"), a_spec(name="newer")])
        await it.look()
        assert 6 == len(it.rows())
        assert before == it.under_the_cursor()
        await it.press("3", "2")
        assert before == it.under_the_cursor(), "also after a look at another tab"

    run(body, store, tab=Tab.JOBS)


def test_a_job_opens_and_is_kept_as_it_is_now() -> None:
    store = a_store()

    async def body(it: Watching) -> None:
        await it.press("down", "down", "down", "enter")
        assert "reading ..." == it.text("#all")
        await it.look()
        assert "train" in it.text("#all")
        assert "running" in it.text("#all")
        store.cancel(1)
        await it.look()
        assert "cancelled" in it.text("#all")
        await it.press("escape")
        await it.look()
        assert "cancelled" in it.column("state")

    run(body, store, tab=Tab.JOBS)


def test_a_machine_opens_with_its_tasks() -> None:
    async def body(it: Watching) -> None:
        await it.press("down", "enter")
        await it.look()
        assert "machine-2" in it.text("#all")
        assert "serve" in it.text("#all")
        await it.press("2")
        assert "machine-2" in it.text("#all"), "keys of the table do nothing here"

    run(body, tab=Tab.MACHINES)


def test_a_job_that_is_gone_is_said() -> None:
    class Forgetful(Absent):
        def job(self, _: int) -> None:
            return None

    async def body(it: Watching) -> None:
        await it.press("enter")
        await it.look()
        assert "There is no job 4 any more." == it.text("#all")

    run(body, Forgetful(a_store()), tab=Tab.JOBS)


def test_while_the_store_is_away_the_rows_stay_and_it_comes_back() -> None:
    store = Absent(a_store())

    async def body(it: Watching) -> None:
        store.is_away = True
        await it.look()
        assert "the database is away: gone \\x1b[2Jfishing · 4 jobs" == it.text("#status")
        assert 4 == len(it.rows())
        store.is_away = False
        await it.look()
        assert "4 jobs" == it.text("#status")

    run(body, store, tab=Tab.JOBS)


def test_it_reads_at_most_once_a_second_and_not_while_paused() -> None:
    store = Absent(a_store())

    async def body(it: Watching) -> None:
        for _ in range(5):
            it.app.look()
            await it.settled()
            await it.press("2", "3", "s")
        assert 1 == store.reads
        await it.look()
        assert 2 == store.reads
        await it.press("p")
        assert "paused" in it.text("#status")
        await it.look()
        assert 2 == store.reads
        await it.press("p")
        it.app.look()
        await it.settled()
        assert 3 == store.reads, "a second has passed meanwhile"

    run(body, store)


def test_a_slow_store_is_read_less_often() -> None:
    class Slow(Absent):
        clock: ManualClock

        def reports(self) -> list[ProcessReport]:
            self.reads += 1
            self.clock.advance(2.0)
            return self._store.reports()

    store = Slow(a_store())
    store.clock = ManualClock()

    async def body(it: Watching) -> None:
        store.clock = it.clock
        await it.look()
        assert 2 == store.reads, "a read of two seconds"
        for _ in range(int(2 * REST) - 3):
            await it.look()
        assert 2 == store.reads
        await it.look()
        assert 3 == store.reads

    run(body, store)


def test_a_signal_ends_it() -> None:
    async def body(it: Watching) -> None:
        it.stop.set()
        it.app.look()
        await it.settled()
        assert not it.app.is_running or it.app.return_code == 0

    run(body)


def test_of_many_the_first_are_listed_and_all_are_counted() -> None:
    store = MemoryStore(ManualClock(now=1_000.0))
    store.add_machines(a_cell(ROWS_MAX + 50, cpu_milli=4_000))
    a_running_job(store, a_spec(), [ROWS_MAX + 40], cpu_milli=3_000)
    store.submit([a_spec() for _ in range(ROWS_MAX)])

    async def body(it: Watching) -> None:
        assert f"the first {ROWS_MAX} of {ROWS_MAX + 50} machines" == it.text("#status")
        await it.press("s", "s")
        await it.look()
        assert f"machine-{ROWS_MAX + 40}" == it.column("machine")[0]
        await it.press("2")
        await it.look()
        assert f"the newest {ROWS_MAX} jobs; / finds others" == it.text("#status")

    run(body, store, tab=Tab.MACHINES)


class Spoiled(Absent):
    """A store in which everything has one name, of a kind that none of ours accepts."""

    text = ""

    def job(self, job: int) -> JobStatus:
        status = self._store.job(job)
        assert status is not None
        text = self.text
        return replace(status, name=text, tenant=text, scheduler=text, park_detail=text)

    def jobs(self, **how: Any) -> list[JobStatus]:  # noqa: ANN401 - passed on
        return [self.job(it.id) for it in self._store.jobs(**how)]

    def reports(self) -> list[ProcessReport]:
        text = self.text
        return [replace(it, kind=text, replica=text) for it in self._store.reports()[:1]]

    def snapshot(self) -> Snapshot:
        snapshot = self._store.snapshot()
        return replace(snapshot, names=(self.text,) * len(snapshot.rows.id))


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_no_name_reaches_the_terminal_raw(size: tuple[int, int]) -> None:
    store = Spoiled(a_store())

    async def body(it: Watching) -> None:
        for text in (*groups(), LONG, LONG_AND_UNPRINTABLE):
            store.text = text
            for number in ("1", "2", "3"):
                await it.press(number)
                await it.look()
                cells = [cell for row in it.rows() for cell in row]
                assert cells
                assert [] == [raw_in(cell) for cell in cells if raw_in(cell)]
        for tab in ("2", "3"):
            await it.press(tab, "enter")
            for text in (*groups(), LONG, LONG_AND_UNPRINTABLE):
                store.text = text
                await it.look()
                assert [] == raw_in(it.text("#all"))
                assert "state" in it.text("#all")
            await it.press("escape")

    run(body, store, size=size)


def test_machines_can_be_sorted_by_each_of_their_columns() -> None:
    assert ORDERS == tuple(column.key for column in COLUMNS[Tab.MACHINES])
