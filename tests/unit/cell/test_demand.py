"""What tasks of late asked for, by their constraints."""

from math import exp

import pytest

from omega.cell.demand import NO_DEMAND, SETS_MAX, SHARE_MIN, Demand, DemandTally
from omega.model.jobs import Constraint, LeasedJob, Operator
from omega.testing.builders import a_group, a_job

T4 = Constraint("gpu_model", Operator.IN, ("T4",))
IN_A = Constraint("zone", Operator.IN, ("a",))


def told(demand: Demand) -> dict[frozenset[Constraint], list[float]]:
    return dict(zip(demand.constraints, demand.amounts.tolist(), strict=True))


def rack(number: int) -> Constraint:
    return Constraint("rack", Operator.IN, (f"rack-{number}",))


def plain() -> LeasedJob:
    return a_job(1_000, cpu_milli=1_000)


def test_what_tasks_ask_for_is_added_up_by_their_constraints() -> None:
    demand = Demand.of(
        [
            a_group(3, cpu_milli=2_000, memory_mib=5),
            a_group(2, cpu_milli=1_000, gpus=1, gpu_slices=250, constraints=(T4, IN_A)),
            a_group(1, cpu_milli=500, gpus=2, constraints=(IN_A, T4)),
        ]
    )

    assert {
        frozenset(): [6_000, 15, 0, 0],
        frozenset({T4, IN_A}): [2_500, 0, 0, 2_500],
    } == told(demand)
    assert demand.tells_apart


def test_equal_constraints_tell_no_machines_apart() -> None:
    tally = DemandTally()
    for _ in range(3):
        tally.count(a_job(constraints=(T4,)))

    assert NO_DEMAND is tally.demand()
    assert not NO_DEMAND.tells_apart
    assert not Demand.of([a_group(1)]).tells_apart


def test_a_job_weighs_less_the_more_jobs_came_after_it() -> None:
    tally = DemandTally(memory_jobs=1.0)
    tally.count(a_job(cpu_milli=1_000, constraints=(T4,)))
    tally.count(a_job(cpu_milli=1_000))
    amounts = told(tally.demand())

    assert 0.3679 == pytest.approx(
        amounts[frozenset({T4})][0] / amounts[frozenset()][0], abs=0.0001
    )


def test_a_small_share_does_not_count() -> None:
    tally = DemandTally()
    tally.count(a_job(999, cpu_milli=1_000))
    tally.count(a_job(1, cpu_milli=1_000, constraints=(T4,)))
    assert 1 / 1_000 < SHARE_MIN
    assert NO_DEMAND is tally.demand()

    tally.count(a_job(3, cpu_milli=1_000, constraints=(T4,)))
    assert {frozenset(), frozenset({T4})} == set(told(tally.demand()))


def test_a_large_share_of_one_resource_counts() -> None:
    tally = DemandTally()
    tally.count(a_job(999, cpu_milli=1_000))
    tally.count(a_job(1, cpu_milli=1_000, gpus=1, constraints=(T4,)))

    assert frozenset({T4}) in told(tally.demand())


def test_so_many_sets_are_remembered_and_the_least_is_forgotten() -> None:
    tally = DemandTally()
    for number in range(SETS_MAX):
        tally.count(a_job(1 if number == 5 else 10, constraints=(rack(number),)))
    tally.count(a_job(10, constraints=(rack(SETS_MAX),)))

    known = set(told(tally.demand()))
    assert SETS_MAX == len(known)
    assert frozenset({rack(5)}) not in known
    assert frozenset({rack(SETS_MAX)}) in known


def test_weights_do_not_grow_without_end() -> None:
    """After 25 jobs, of which each weighs e times as much as the one before, all are divided."""
    tally = DemandTally(memory_jobs=1.0)
    for number in range(25):
        tally.count(a_job(cpu_milli=1_000, constraints=(T4,) if number % 2 else ()))
    amounts = told(tally.demand())

    assert exp(-1) == pytest.approx(amounts[frozenset({T4})][0] / amounts[frozenset()][0])
    assert 1_000 / (1 - exp(-2)) == pytest.approx(amounts[frozenset()][0])


def test_the_same_jobs_come_to_the_same() -> None:
    jobs = [plain(), a_job(9, constraints=(T4,)), a_job(5, gpus=1, constraints=(IN_A,))]
    one, other = DemandTally(), DemandTally()
    for job in jobs:
        one.count(job)
        other.count(job)

    assert one.demand().constraints == other.demand().constraints
    assert one.demand().amounts.tolist() == other.demand().amounts.tolist()


def test_a_demand_stays_as_it_was() -> None:
    tally = DemandTally()
    tally.count(a_job(9, constraints=(T4,)))
    tally.count(plain())
    demand = tally.demand()
    before = demand.amounts.tolist()
    tally.count(plain())

    assert before == demand.amounts.tolist()
    with pytest.raises(ValueError, match="read-only"):
        demand.amounts[0] = 1
