"""What `omega job` says of programs that ended."""

from dataclasses import replace

import pytest

from omega.cli.job.screens import FAILURES_SHOWN, job_screen, jobs_table
from omega.lifecycle.states import State
from omega.model.exits import Exit, ExitCause, PastExit
from omega.reports.exits import WORDS, exit_counts, in_words
from omega.reports.jobs import EXITS_MAX, JobReport
from tests.unit.cli.job.test_screens import NO_PROGRESS, a_status, drawn

WELL = Exit(cause=ExitCause.EXITED, code=0)


def a_past_exit(task: int, how: Exit) -> PastExit:
    return PastExit(
        job=7,
        task=task,
        machine=f"m-{task}",
        started_ms=1_700_000_000_000,
        ended_ms=1_700_000_060_000,
        exit=how,
    )


def text_of(*exits: PastExit) -> str:
    status = replace(a_status(State.FAILED), failed=3)
    return drawn(job_screen(JobReport(status, {}, NO_PROGRESS, None, exits=exits)))


@pytest.mark.parametrize("cause", ExitCause)
def test_every_cause_has_words(cause: ExitCause) -> None:
    assert WORDS[cause]
    assert 1 == list(WORDS.values()).count(WORDS[cause])


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (Exit(cause=ExitCause.EXITED, code=3), "exited with code 3"),
        (Exit(cause=ExitCause.SIGNALLED, signal=15), "was killed by SIGTERM"),
        (Exit(cause=ExitCause.TIMEOUT, signal=9), "ran longer than it may, was killed by SIGKILL"),
        (Exit(cause=ExitCause.TIMEOUT), "ran longer than it may"),
        (
            Exit(cause=ExitCause.OUT_OF_MEMORY, signal=9),
            "used more memory than it asked for, was killed by SIGKILL",
        ),
        (Exit(cause=ExitCause.LOST), "was lost"),
    ],
)
def test_an_exit_in_words(how: Exit, words: str) -> None:
    assert words == in_words(how)


def test_exits_are_counted_by_cause_and_successes_by_themselves() -> None:
    killed = Exit(cause=ExitCause.OUT_OF_MEMORY)
    exits = [a_past_exit(n, how) for n, how in enumerate([killed, WELL, killed, WELL, WELL])]

    assert [("succeeded", 3), ("out_of_memory", 2)] == list(exit_counts(exits).items())
    assert {} == exit_counts([])


def test_a_failed_task_is_shown_with_all_that_is_known() -> None:
    bad = Exit(cause=ExitCause.EXITED, code=3, restarts=2, detail="[red]no\x1b")

    text = text_of(a_past_exit(5, bad), a_past_exit(6, WELL))

    assert "state        failed" in text
    assert "40: 12 placed, 2 of them over, 3 failed" in text
    assert "exits        1 exited, 1 succeeded" in text
    assert "m-5      2023-11-14 22:14:20 UTC         2  exited with code 3:" in text
    assert "[red]no" in text
    assert "\x1b" not in text
    assert "m-6" not in text


def test_a_jobs_screen_is_not_flooded_by_failures() -> None:
    exits = [a_past_exit(n, Exit(cause=ExitCause.LOST)) for n in range(FAILURES_SHOWN + 2)]

    text = text_of(*exits)

    assert "... and 2 tasks more" in text
    assert f"m-{FAILURES_SHOWN - 1}" in text
    assert f"m-{FAILURES_SHOWN} " not in text


def test_it_is_said_where_exits_are_cut_off() -> None:
    assert f"of the first {EXITS_MAX:,}" in text_of(*[a_past_exit(0, WELL)] * EXITS_MAX)


def test_without_exits_nothing_is_said_of_them() -> None:
    text = drawn(job_screen(JobReport(a_status(State.RUNNING), {}, NO_PROGRESS, None)))

    assert "exits" not in text
    assert "failed" not in text


def test_a_list_of_jobs_shows_the_state() -> None:
    assert "failed" in drawn(jobs_table([a_status(State.FAILED)]))
