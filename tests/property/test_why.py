"""`why` on small random cells, against a search that tries everything and shares no code with it.

The search knows machines as dictionaries, and tries every place for every task. What it finds that
could help, `why` must not deny.
"""

from dataclasses import replace
from itertools import combinations

from hypothesis import given

from omega.model.machines import MachineState
from omega.reports.why.reasons import Reason
from omega.reports.why.report import WhyReport, why_job
from tests.fixtures.doses import examples
from tests.fixtures.small_cells import Example, cells, spec_of, store_of

GAP = 10


def most_placed(case: Example, gone: frozenset[int], *, empty: bool, all_open: bool) -> int:
    """Return how many tasks of the job find a place at once, if every place is tried.

    `gone` are positions of occupants that have lost their places.
    """
    free = [[machine.cpu, machine.memory] for machine in case.machines]
    for number, occupant in enumerate(case.occupants):
        if not empty and number not in gone:
            free[occupant.machine][0] -= occupant.cpu
            free[occupant.machine][1] -= occupant.memory
    tasks = [(number, one) for number, one in enumerate(case.groups) for _ in range(one.tasks)]

    def search(at: int, taken: frozenset[tuple[int, int]]) -> int:
        if at == len(tasks):
            return 0
        number, one = tasks[at]
        best = search(at + 1, taken)
        for where, machine in enumerate(case.machines):
            if machine.state is not MachineState.OPEN and not all_open:
                continue
            if one.zone is not None and machine.zone != one.zone:
                continue
            if one.apart and (number, where) in taken:
                continue
            if free[where][0] < one.cpu or free[where][1] < one.memory:
                continue
            free[where][0] -= one.cpu
            free[where][1] -= one.memory
            best = max(best, 1 + search(at + 1, taken | {(number, where)}))
            free[where][0] += one.cpu
            free[where][1] += one.memory
        return best

    return search(0, frozenset())


def gets_on(case: Example, gone: frozenset[int] = frozenset(), **supposed: bool) -> bool:
    """Return whether the job could be placed as far as it must be at once."""
    supposed = {"empty": False, "all_open": False, **supposed}
    return most_placed(case, gone, **supposed) >= max(1, case.minimum)


def subsets(of: list[int]) -> list[frozenset[int]]:
    return [frozenset(some) for size in range(len(of) + 1) for some in combinations(of, size)]


def evicted_at(case: Example, precedence: int, *, protected_too: bool = False) -> bool:
    """Return whether some set of tasks that yield to a precedence makes room, if evicted."""
    yields = [
        number
        for number, one in enumerate(case.occupants)
        if (one.preemptible or protected_too) and one.precedence + GAP <= precedence
    ]
    return any(gets_on(case, gone) for gone in subsets(yields))


def quota_suffices(case: Example) -> bool:
    if case.cpu_left is None:
        return True
    if case.minimum > 1:
        tasks = [one.cpu for one in case.groups for _ in range(one.tasks)]
        return sum(tasks[: case.minimum]) <= case.cpu_left
    return min(one.cpu for one in case.groups) <= case.cpu_left


def asked_of(case: Example) -> tuple[WhyReport, list[int]]:
    """Return what `why` tells of the job of an example, and the jobs of the occupants."""
    store, jobs = store_of(case)
    (job,) = store.submit([spec_of(case)])
    status = store.job(job)
    assert status is not None
    return why_job(store, status, lambda kind: kind == "service"), jobs


@examples(1_000)
@given(cells())
def test_why_agrees_with_a_search_of_everything(case: Example) -> None:
    report, jobs = asked_of(case)
    reason, is_packed = report.finding.reason, len(case.groups) > 1 and case.minimum > 1

    never = not gets_on(case, empty=True, all_open=True)
    if reason.is_permanent and report.finding.is_proven:
        assert never
    if never:
        assert reason.is_permanent
    if not is_packed and not never:
        assert (reason is Reason.OVER_QUOTA) == (not quota_suffices(case))
        assert reason.has_room == (gets_on(case) and quota_suffices(case))
        closed = not gets_on(case, empty=True)
        if reason is Reason.MACHINES_CLOSED:
            assert closed
        if not gets_on(case):
            assert_evictions_agree(case, report, jobs)
        if quota_suffices(case) and not gets_on(case):
            evicts = evicted_at(case, case.precedence)
            assert (reason is Reason.TO_EVICT) == evicts
            assert (reason is Reason.MACHINES_CLOSED) == (closed and not evicts)
    assert_funnel_agrees(case, report)


def assert_evictions_agree(case: Example, report: WhyReport, jobs: list[int]) -> None:
    found = report.evictions
    assert found is not None
    assert found.is_complete
    assert found.makes_room == evicted_at(case, case.precedence)
    needed = [level for level in (10, 19, 20) if evicted_at(case, level)]
    assert found.precedence_needed == (min(needed) if needed else None)
    alone = {jobs[at] for at in range(len(jobs)) if gets_on(case, frozenset({at}))}
    assert alone == set(found.ends_suffice)
    if found.protected:
        assert not found.makes_room
        assert evicted_at(case, case.precedence, protected_too=True)
    elif not found.makes_room:
        assert not evicted_at(case, case.precedence, protected_too=True)


def assert_funnel_agrees(case: Example, report: WhyReport) -> None:
    """The last figure of the funnel is how many machines take one task of the group."""
    one = replace(case.groups[report.group], tasks=1)
    takes = sum(
        gets_on(
            replace(
                case,
                groups=(one,),
                minimum=0,
                machines=tuple(
                    it if number == at else replace(it, state=MachineState.DOWN)
                    for number, it in enumerate(case.machines)
                ),
            )
        )
        for at in range(len(case.machines))
    )
    assert takes == report.funnel[-1].left
