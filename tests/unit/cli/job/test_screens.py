"""What is told of jobs."""

from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest
from rich.console import RenderableType

from omega.cli.job.screens import MACHINES_SHOWN, job_screen, jobs_table
from omega.lifecycle.states import ParkReason, State
from omega.model.arrays import integers
from omega.model.elastic import Phase, PhaseProgress
from omega.model.progress import JobProgress
from omega.model.quotas import Budget, Quota, QuotaScope, QuotaUse
from omega.reports.jobs import NEXT_STEPS, JobReport, Why, progress_row, row_of, why_waiting
from omega.store.status import JobStatus
from omega.terminal.terminal import PrintableConsole


def a_progress(*jobs: int) -> JobProgress:
    return JobProgress(
        job=integers(jobs),
        kind=("ResNet-18 (batch size 64)",) * len(jobs),
        wanted=integers([120_000] * len(jobs)),
        done=integers([40_000] * len(jobs)),
        run_ms=integers([1_800_000] * len(jobs)),
        tasks=integers([40] * len(jobs)),
        since_ms=integers([-1] * len(jobs)),
    )


NO_PROGRESS = a_progress()


def a_status(
    state: State = State.PENDING,
    *,
    park_reason: ParkReason | None = None,
    fruitless: int = 0,
    name: str = "train",
) -> JobStatus:
    return JobStatus(
        id=7,
        name=name,
        scheduler="batch",
        tenant="default",
        precedence=3,
        state=state,
        tasks=40,
        placed=12,
        ended=2,
        failed=0,
        minimum=0,
        attempts=fruitless + 1,
        fruitless=fruitless,
        park_reason=park_reason,
        park_detail=None if park_reason is None else "gpu_model B200: no machine has it",
        submitted_ms=1_700_000_000_000,
        first_leased_ms=1_700_000_001_500,
        finished_ms=None,
        lease_holder="batch/1" if state is State.PLANNING else None,
        preemptible=True,
        evicted_by=None,
        evicted_ms=None,
        workers_max=None,
        parent=None,
    )


def drawn(renderable: RenderableType) -> str:
    console = PrintableConsole(width=80)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_every_reason_to_park_has_a_next_step() -> None:
    assert set(ParkReason) == set(NEXT_STEPS)


def test_a_parked_job_tells_its_reason_evidence_and_next_step() -> None:
    why = why_waiting(a_status(State.PARKED, park_reason=ParkReason.UNKNOWN_ATTRIBUTE), ["batch"])

    assert why is not None
    assert "unknown_attribute" == why.reason
    assert "gpu_model B200: no machine has it" == why.evidence
    assert "omega cell show" in why.next_step


def test_a_job_over_its_quota_tells_what_is_left_of_those_that_it_draws_on() -> None:
    tenants = QuotaUse(
        Quota(QuotaScope.TENANT, "default", {Budget.CPU_MILLI: 2_000, Budget.JOBS: 9}),
        {Budget.CPU_MILLI: -500, Budget.JOBS: 8},
    )
    others = QuotaUse(Quota(QuotaScope.TENANT, "batch", {Budget.JOBS: 1}), {Budget.JOBS: 0})
    status = replace(
        a_status(State.PARKED, park_reason=ParkReason.OVER_QUOTA), park_detail="not enough is left"
    )

    why = why_waiting(status, ["batch"], [others, tenants])

    assert why is not None
    assert "over_quota" == why.reason
    assert "not enough is left; left for tenant default: cpu -0.5, jobs 8" == why.evidence
    assert "omega quota list" in why.next_step
    assert "over_quota" in drawn(jobs_table([status]))


def screen_of(
    job: JobStatus, placements: Mapping[int, str], progress: JobProgress, why: Why | None
) -> RenderableType:
    return job_screen(JobReport(job, placements, progress, why))


@pytest.mark.parametrize(
    ("status", "running", "reason"),
    [
        (a_status(), ["service"], "no_scheduler"),
        (a_status(), ["batch"], "queued"),
        (a_status(fruitless=2), ["batch"], "backing_off"),
        (a_status(State.PLANNING), ["batch"], "being_planned"),
        (a_status(State.PLANNING), [], "no_scheduler"),
        (a_status(State.RUNNING), [], None),
        (a_status(State.SUCCEEDED), [], None),
        (a_status(State.CANCELLED), [], None),
        (a_status(State.FAILED), [], None),
    ],
)
def test_a_waiting_job_has_one_dominant_reason(
    status: JobStatus, running: Collection[str], reason: str | None
) -> None:
    why = why_waiting(status, running)

    assert reason == (why.reason if why else None)


def test_a_jobs_screen_says_where_its_tasks_run() -> None:
    placements = {0: "m-1", 1: "m-1", 2: "m-1", 5: "m-1", 3: "m-2"}
    text = drawn(screen_of(a_status(State.RUNNING), placements, NO_PROGRESS, None))

    assert "0-2, 5" in text
    assert "40: 12 placed, 2 of them over" in text
    assert "2023-11-14 22:13:20 UTC" in text
    assert "(1.5 s later)" in text
    assert "waits for" not in text


def test_progress_as_json() -> None:
    assert progress_row(NO_PROGRESS) is None
    assert {
        "kind": "ResNet-18 (batch size 64)",
        "steps": 120_000,
        "done": 40_000,
        "run_ms": 1_800_000,
    } == progress_row(a_progress(7))


def test_a_jobs_screen_is_not_flooded_by_machines() -> None:
    placements = {task: f"m-{task}" for task in range(MACHINES_SHOWN + 5)}

    assert "... and 5 machines more" in drawn(screen_of(a_status(), placements, NO_PROGRESS, None))


def test_a_jobs_screen_says_why_it_waits() -> None:
    status = a_status(State.PARKED, park_reason=ParkReason.NEVER_FITS)
    text = drawn(screen_of(status, {}, NO_PROGRESS, why_waiting(status, [])))

    assert "waits for    never_fits" in text
    assert "next step    Ask for less" in text


def test_a_name_is_shown_as_it_is_written() -> None:
    assert "[bold]x[/]" in drawn(jobs_table([a_status(name="[bold]x[/]")]))
    assert "[red]" in drawn(screen_of(a_status(name="[red]"), {}, NO_PROGRESS, None))


def test_a_row_has_every_field_as_json() -> None:
    row = row_of(a_status(State.PARKED, park_reason=ParkReason.NO_ROOM))

    assert ("parked", "no_room", 7) == (row["state"], row["park_reason"], row["id"])
    assert set(JobStatus.__dataclass_fields__) == set(row)


@pytest.mark.parametrize("kind", ["batch", "k" * 90])
def test_a_long_name_takes_no_room_from_what_tells_jobs_apart(kind: str) -> None:
    long = replace(
        a_status(State.PARKED, park_reason=ParkReason.NO_MACHINE_MATCHES, name="n" * 200),
        id=123_456,
        scheduler=kind,
    )
    header, *rows = drawn(jobs_table([long, a_status(State.SUCCEEDED)])).splitlines()

    assert ["id", "name", "scheduler", "state", "placed", "wait", "why"] == header.split()
    assert 2 == len(rows)
    assert max(map(len, rows)) <= 80
    identity, name, _, state, placed, *_ = rows[0].split()
    assert ("123456", "parked", "12/40") == (identity, state, placed)
    assert name.endswith("n\u2026")
    assert rows[1].split()[:4] == ["7", "train", "batch", "succeeded"]


def test_who_was_evicted_reads_for_which_job_and_when() -> None:
    evicted = replace(a_status(), evicted_by=12, evicted_ms=1_700_000_005_000)

    shown = drawn(screen_of(evicted, {}, NO_PROGRESS, None))

    assert "last 2023-11-14 22:13:25 UTC, for job 12" in shown
    assert "evicted" not in drawn(screen_of(a_status(), {}, NO_PROGRESS, None))
    assert "not preemptible" in drawn(
        screen_of(replace(a_status(), preemptible=False), {}, NO_PROGRESS, None)
    )


def test_an_elastic_job_tells_its_workers_and_phases() -> None:
    elastic = replace(a_status(State.RUNNING), workers_max=1_000)
    helping = replace(a_status(State.RUNNING), id=8, parent=7)
    phases = (Phase("map", 1_000, 10_000), Phase("reduce", 50, 30_000, after="map"))
    progress = PhaseProgress(7, 7, phases, (300, 0), (3_000_000, 0))
    report = JobReport(elastic, {}, NO_PROGRESS, None, [helping, helping], progress)

    shown = drawn(job_screen(report))

    assert "at most 1,000; 20 helpers at work" in shown
    assert "map: 300 of 1,000 activities" in shown
    assert "reduce: 0 of 50 activities" in shown
    assert "helps" not in shown
    assert "job 7" in drawn(screen_of(helping, {}, NO_PROGRESS, None))
    summary = report.summary()
    assert [{"job": 8, "running": 10}] * 2 == summary["helpers"]
    assert summary["phases"] == [
        {"phase": "map", "activities": 1_000, "done": 300, "busy_ms": 3_000_000},
        {"phase": "reduce", "activities": 50, "done": 0, "busy_ms": 0},
    ]
