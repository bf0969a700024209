"""What a memory store says was held over a time, beside a bookkeeping run by run."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omega.clock import ManualClock
from omega.model.arrays import integers
from omega.model.jobs import LeasedJob
from omega.store.memory.ended_tasks import EndedTasks
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_cell
from omega.testing.steps import grant, lease_all
from tests.fixtures.held_over import Asked, Run, held_by_hand, held_in, runs_in

NOW_MS = 1_000
TENANTS, KINDS = ("ann", "bob"), ("batch", "service")


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Asked], list[Run]]:
    """Draw jobs, and when their tasks began and ended."""
    asked = st.builds(
        Asked,
        tenant=st.sampled_from(TENANTS),
        scheduler=st.sampled_from(KINDS),
        cpu_milli=st.integers(1, 10**6),
        memory_mib=st.integers(0, 10**6),
        gpu_slices=st.sampled_from([0, 1, 250]),
    )
    jobs = draw(st.lists(asked, min_size=1, max_size=4))
    runs = []
    for _ in range(draw(st.integers(0, 8))):
        began_ms = draw(st.integers(0, NOW_MS))
        ended_ms = draw(st.none() | st.integers(began_ms, NOW_MS))
        runs.append(Run(draw(st.integers(0, len(jobs) - 1)), began_ms, ended_ms))
    return jobs, runs


def played(jobs: list[Asked], runs: list[Run]) -> MemoryStore:
    """Let the tasks begin and end on a cell at the times of the history."""
    clock = ManualClock()
    store = MemoryStore(clock)
    store.add_machines(a_cell(len(runs) + 1, cpu_milli=2**30, gpus=1, memory_mib=2**30))
    # A task more than there are runs: no job is over with its last one.
    ids = store.submit([asked.spec(len(runs) + 1) for asked in jobs])
    leased: dict[int, LeasedJob] = {
        job.id: job for kind in KINDS for job in lease_all(store, scheduler=kind)
    }
    begins = [(run.began_ms, 0, task) for task, run in enumerate(runs)]
    ends = [(run.ended_ms, 1, task) for task, run in enumerate(runs) if run.ended_ms is not None]
    for at_ms, is_end, task in sorted(begins + ends):
        clock.sleep(at_ms / 1_000 - clock.now())
        run = runs[task]
        if is_end:
            ended = store.end_tasks(integers([ids[run.job]]), np.array([task], dtype=np.intp))
            assert 1 == ended
        else:
            grant(store, leased[ids[run.job]], [task], [task + 1], **jobs[run.job].named)
    clock.sleep(NOW_MS / 1_000 - clock.now())
    assert [] == store.verify()
    return store


@given(histories(), st.integers(1, 2 * NOW_MS))
def test_what_was_held_is_the_sum_over_all_runs(
    history: tuple[list[Asked], list[Run]], over_ms: int
) -> None:
    jobs, runs = history
    store = played(jobs, runs)

    told = store.holdings(over_ms)

    assert (NOW_MS - over_ms, NOW_MS, 0) == (told.since_ms, told.until_ms, told.unknown)
    assert held_by_hand(jobs, runs, told.since_ms, told.until_ms) == held_in(told)
    counted = [r for r in runs if r.ended_ms is None or r.ended_ms > told.since_ms]
    assert len(counted) == runs_in(told)


@given(st.integers(1, 20), st.lists(st.integers(0, 12), max_size=40))
def test_the_last_ended_tasks_are_kept_in_order(kept_max: int, sizes: list[int]) -> None:
    ended = EndedTasks(kept_max)
    ends: list[int] = []

    for at_ms, number in enumerate(sizes):
        jobs = integers(range(len(ends), len(ends) + number))
        ended.add(jobs, np.zeros(number, np.intp), jobs, jobs, at_ms)
        ends += jobs.tolist()

        assert ends[-kept_max:] == ended.rows["job"].tolist()
    assert ended.rows["ended_ms"].tolist() == sorted(ended.rows["ended_ms"].tolist())
