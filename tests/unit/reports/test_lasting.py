"""What schedulers have counted, while they are killed and started again."""

from collections.abc import Mapping
from typing import Any

from omega.reports.lasting import NAMES_MAX, PROCESSES_MAX, REPLICAS_MAX, Counted, LastingCounts
from omega.store.status import ProcessReport


def a_report(
    attempts: int,
    *,
    replica: str = "0",
    pid: int = 1,
    started_ms: int = 0,
    seen_ms_ago: int = 0,
    elapsed_s: float | None = None,
    more: Mapping[str, Any] | None = None,
) -> ProcessReport:
    facts = {
        "elapsed_s": attempts if elapsed_s is None else elapsed_s,
        "totals": {"attempts": attempts},
        "waits": {"3": attempts},
        **(more or {}),
    }
    return ProcessReport("batch", replica, pid, started_ms, seen_ms_ago, facts)


def attempts(counted: Counted) -> dict[str, int]:
    return {replica: facts["totals"]["attempts"] for _, replica, facts in counted.reported()}


def test_a_process_that_replaces_another_goes_on_counting() -> None:
    counts = LastingCounts()
    told = [
        attempts(counts.note([report], now_s))
        for now_s, report in enumerate(
            [
                a_report(5, pid=1),
                a_report(9, pid=1),
                a_report(2, pid=2, started_ms=3),
                a_report(7, pid=2, started_ms=3),
                a_report(1, pid=3, started_ms=9),
            ]
        )
    ]

    assert [{"0": 5}, {"0": 9}, {"0": 11}, {"0": 16}, {"0": 17}] == told


def test_in_a_container_each_process_has_the_same_number() -> None:
    counts = LastingCounts()
    counts.note([a_report(9)], 0.0)

    assert {"0": 11} == attempts(counts.note([a_report(2)], 1.0))
    assert {"0": 12} == attempts(counts.note([a_report(3)], 2.0))


def test_what_is_of_now_is_that_of_the_process_that_lives() -> None:
    counts = LastingCounts()
    window = {"window_s": 10.0, "window": {"jobs_placed": 100}}
    counts.note([a_report(9, pid=1, more=window)], 0.0)

    (told,) = counts.note([a_report(1, pid=2, more={"window_s": 10.0})], 1.0).reported()

    assert 0 == told[2]["measures"]["jobs_per_s_now"]
    assert {"3": 10} == told[2]["waits"]


def test_many_restarts_are_added_up() -> None:
    counts = LastingCounts()
    for pid in range(10 * PROCESSES_MAX):
        counted = counts.note([a_report(3, pid=pid)], float(pid))

    assert {"0": 30 * PROCESSES_MAX} == attempts(counted)
    (replica,) = counted.replicas
    assert PROCESSES_MAX + 1 == len(replica.facts)


def test_a_silent_replica_has_no_series_and_goes_on_when_it_is_back() -> None:
    counts = LastingCounts()
    counts.note([a_report(5)], 0.0)

    assert {} == attempts(counts.note([a_report(5, seen_ms_ago=60_000)], 60.0))
    assert {"0": 7} == attempts(counts.note([a_report(2, pid=2)], 100.0))


def test_two_logins_with_one_name_are_one_replica() -> None:
    counts = LastingCounts()
    both = [a_report(5, pid=1), a_report(3, pid=2)]

    assert {"0": 8} == attempts(counts.note(both, 0.0))
    assert {"0": 8} == attempts(counts.note(both[:1], 1.0)), "the other has ended"


def test_replicas_are_bounded_and_forgotten_after_an_hour() -> None:
    counts = LastingCounts()
    crowd = [a_report(1, replica=str(at)) for at in range(REPLICAS_MAX + 7)]

    counted = counts.note(crowd, 0.0)

    assert (REPLICAS_MAX, 7) == (len(counted.replicas), counted.left_out)
    counts.note([], 4_000.0)
    assert {"new": 1} == attempts(counts.note([a_report(1, replica="new")], 4_001.0))


def test_reports_of_any_form_are_taken() -> None:
    hostile = ProcessReport("batch", "x", 1, 0, 0, {"totals": 7, "elapsed_s": "long"})
    counts = LastingCounts()

    for _ in range(2):
        ((_, _, facts),) = counts.note([hostile], 0.0).reported()

    assert {} == facts["totals"]


def test_a_total_that_falls_is_another_process() -> None:
    """It began while nobody looked, and has counted for longer by now."""
    counts = LastingCounts()
    counts.note([a_report(9, elapsed_s=20)], 0.0)

    assert {"0": 11} == attempts(counts.note([a_report(2, elapsed_s=40)], 60.0))


def test_names_that_logins_invent_are_bounded() -> None:
    counts = LastingCounts()
    for number in range(3 * PROCESSES_MAX):
        invented = {f"{number} {name}": 1 for name in range(NAMES_MAX)}
        found = counts.note([a_report(1, pid=number, more={"totals": invented})], number)

    (replica,) = found.replicas
    assert NAMES_MAX == len(replica.facts[0]["totals"])
