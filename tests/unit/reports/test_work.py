"""The work of a job in steps: figures, the end foretold, and why it is without GPUs."""

from dataclasses import replace

import pytest

from omega.clock import ManualClock
from omega.lifecycle.states import State
from omega.model.jobs import StepWork
from omega.model.round_summary import JobShare, RoundSummary, TypeUse
from omega.reports.jobs import JobReport
from omega.reports.work import WorkReport, why_in_rounds, works_of
from omega.store.memory.store import MemoryStore
from omega.store.rounds import LastRound
from omega.testing.builders import a_spec
from omega.testing.steps import add_a_cell
from tests.unit.cli.job.test_screens import a_status

SHARE = JobShare(
    job=7,
    gpus=4,
    type="v100",
    rate=8.0,
    share={"k80": 0.25, "v100": 0.5},
    pace=5.0,
    age_s=1_000.0,
    promised_s=700.0,
    had_s=600.0,
    preempted=3,
    preempted_in=12,
    is_stalled=False,
)
TYPES = [TypeUse("k80", 4, 0), TypeUse("v100", 4, 4)]
ROUND = LastRound("batch", 12, 1_000_000, 360_000, RoundSummary("fifo", TYPES, [SHARE]))
WORK = WorkReport(
    kind="LM",
    steps=10_000,
    done=4_000,
    run_ms=500_000,
    is_running=True,
    speedup=1.0,
    round=ROUND,
    share=SHARE,
    now_ms=1_120_000,
)
WAITS = replace(WORK, is_running=False, share=replace(SHARE, type=None, rate=0.0))
NO_ROUNDS = replace(WORK, share=None, round=None)


def test_a_job_ends_when_what_is_left_is_made_at_the_pace_that_is_promised() -> None:
    assert 6_000 == WORK.left
    assert 6_000 / 5.0 == WORK.ends_in_s
    assert 6_000 / 5.0 / 60 == replace(WORK, speedup=60.0).ends_in_s
    assert 0 == replace(WORK, done=10_000).ends_in_s


def test_without_rounds_the_pace_is_the_one_so_far_while_it_runs() -> None:
    assert 8.0 == NO_ROUNDS.measured == NO_ROUNDS.rate
    assert 6_000 / 8.0 == NO_ROUNDS.ends_in_s
    assert replace(NO_ROUNDS, is_running=False).ends_in_s is None
    assert replace(NO_ROUNDS, run_ms=0, done=0).ends_in_s is None


def test_no_end_is_foretold_of_what_has_run_and_made_no_step() -> None:
    assert replace(WORK, done=0).ends_in_s is None
    assert replace(WORK, share=replace(SHARE, pace=0.0)).ends_in_s is None


def test_a_forged_pace_makes_no_end_that_json_cannot_hold() -> None:
    forged = replace(WORK, share=replace(SHARE, pace=5e-324))
    slowed = replace(WORK, speedup=1e-300)

    assert forged.ends_in_s is None
    assert slowed.row()["ends_in_s"] is None


def test_promised_and_received_are_parts_of_the_time_since_it_came() -> None:
    assert (0.7, 0.6) == (WORK.promised, WORK.received)
    assert replace(WORK, share=replace(SHARE, age_s=0.0)).promised is None


def test_a_job_whose_gpus_a_round_took_is_preempted_and_told_when_the_next_one_is() -> None:
    why = why_in_rounds(a_status(State.PENDING), WAITS, {"batch"})

    assert why is not None
    reason, evidence, step = why
    assert "preempted" == reason
    assert "Round 12 gave its GPUs to others. It has been preempted 3 times" in evidence
    assert "keeps the 4,000 steps" in evidence
    assert "Wait: round 13 begins in 4 min; it is promised 75% of its time." == step


def test_a_round_that_is_over_is_due() -> None:
    late = replace(WAITS, now_ms=9_000_000, share=replace(SHARE, type=None, share={}))
    why = why_in_rounds(a_status(State.PENDING), late, {"batch"})

    assert why is not None
    assert why[2].startswith("Wait: round 13 is due; no share of GPUs is promised")


def test_a_job_that_never_had_gpus_waits_between_rounds() -> None:
    fresh = replace(WAITS, share=replace(SHARE, type=None, preempted=0, preempted_in=0))
    why = why_in_rounds(a_status(State.PENDING), fresh, {"batch"})

    assert why is not None
    assert "between_rounds" == why[0]


@pytest.mark.parametrize("state", [State.PENDING, State.RUNNING])
def test_a_model_without_a_rate_is_told_in_any_state(state: State) -> None:
    stalled = replace(WAITS, share=replace(SHARE, type=None, is_stalled=True))
    why = why_in_rounds(a_status(state), stalled, set())

    assert why is not None
    assert "no_rate" == why[0]
    assert "no table of rates has LM" in why[1]
    assert ("until another job of its kind wants them" in why[2]) is (state is State.RUNNING)


def test_who_runs_or_has_no_scheduler_or_no_rounds_waits_for_no_round() -> None:
    assert why_in_rounds(a_status(State.RUNNING), WORK, {"batch"}) is None
    assert why_in_rounds(a_status(State.PENDING), WAITS, set()) is None
    assert why_in_rounds(a_status(State.PENDING), NO_ROUNDS, {"batch"}) is None
    assert why_in_rounds(a_status(State.PENDING), None, {"batch"}) is None


def test_the_store_is_read_for_jobs_in_steps_with_what_their_own_kind_tells() -> None:
    store = MemoryStore(ManualClock())
    add_a_cell(store, 1)
    steps = StepWork(kind="LM", steps=10_000)
    first, plain, other = store.submit(
        [a_spec(1, work=steps), a_spec(1), a_spec(1, scheduler="another", work=steps)]
    )
    store.report("batch", "0", pid=1, facts={})
    store.report("nodes", "0", pid=2, facts={"speedup": 60})
    store.begin_round("batch", holder="batch/0", length_ms=360_000)
    told = [replace(SHARE, job=job, type=None) for job in (first, other)]
    store.note_round("batch", 1, {"told": RoundSummary("fifo", TYPES, told).row()})
    jobs = store.jobs()
    work = works_of(store, jobs)
    report = JobReport.read(store, first)

    assert {first, other} == work.keys()
    assert store.last_rounds()[0] == work[first].round
    assert 60.0 == work[first].speedup
    assert work[other].share is None
    assert report is not None
    assert report.why is not None
    assert "preempted" == report.why.reason
    summary = report.summary()["work"]
    assert isinstance(summary, dict)
    assert (4, 3, 12, 1) == tuple(
        summary[name] for name in ("gpus", "preempted", "preempted_in", "round")
    )
    plain_report = JobReport.read(store, plain)
    assert plain_report is not None
    assert plain_report.work is None
