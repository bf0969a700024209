"""The rows of a job about its work."""

from dataclasses import replace

from omega.cli.job.screens import job_screen, jobs_table
from omega.cli.job.work_rows import TYPES_SHOWN, work_rows
from omega.reports.jobs import JobReport
from tests.unit.cli.job.test_screens import NO_PROGRESS, a_status, drawn
from tests.unit.reports.test_work import NO_ROUNDS, SHARE, WORK


def test_a_job_in_rounds_tells_type_rate_share_preemptions_and_end() -> None:
    assert {
        "work": "LM",
        "GPUs": "4, on v100",
        "rate": "8 steps/s now; measured so far: 8",
        "steps": "4,000 of 10,000 (40%) in 8 min, 6,000 left",
        "share": "promised k80 25%, v100 50%; since it came promised 70%, had 60%",
        "preempted": "3 times, last by round 12",
        "done": "in 20 min with the share that is promised: 1970-01-01 00:38:40 UTC",
    } == dict(work_rows(WORK))


def test_a_job_without_rounds_tells_its_rate_and_its_end() -> None:
    rows = dict(work_rows(NO_ROUNDS))

    assert ["work", "rate", "steps", "done"] == list(rows)
    assert "in 12 min at this rate" in rows["done"]


def test_what_is_not_known_has_no_row() -> None:
    fresh = replace(SHARE, type=None, rate=0.0, share={}, pace=0.0, age_s=0.0, preempted=0)
    rows = dict(work_rows(replace(WORK, is_running=False, run_ms=0, done=0, share=fresh)))

    assert {"GPUs": "4, none now", "share": "nothing promised yet", "preempted": "never"} == {
        name: text for name, text in rows.items() if name not in {"work", "steps"}
    }


def test_an_end_that_nobody_will_see_is_not_told() -> None:
    assert "done" not in dict(
        work_rows(replace(WORK, steps=10**12, share=replace(SHARE, pace=1e-9)))
    )


def test_forged_shares_neither_fill_the_screen_nor_exceed_all_of_the_time() -> None:
    forged = replace(SHARE, share={f"t{number}": 1e15 for number in range(TYPES_SHOWN + 9_000)})
    (told,) = (text for name, text in work_rows(replace(WORK, share=forged)) if name == "share")

    assert told.startswith("promised t0 100%, t1 100%, ")
    assert "t11 100% and 9,000 more; since it came" in told


def test_jobs_have_a_column_of_steps_if_some_are_in_steps() -> None:
    told = drawn(jobs_table([a_status()], {7: 0.4}, {7: "preempted"}))
    plain = drawn(jobs_table([a_status()]))

    assert "steps" in told
    assert "40%" in told
    assert "preempted" in told
    assert "steps" not in plain


def test_a_jobs_screen_says_how_far_it_has_come() -> None:
    text = drawn(job_screen(JobReport(a_status(), {}, NO_PROGRESS, None, work=WORK)))

    assert "work         LM" in text
    assert "steps        4,000 of 10,000 (40%) in 8 min, 6,000 left" in text
    assert "work " not in drawn(job_screen(JobReport(a_status(name="x"), {}, NO_PROGRESS, None)))
