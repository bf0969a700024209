"""Stories on the screen."""

from uuid import UUID

import pytest

from omega.cli.job.story_screen import FIRST_SHOWN, LAST_SHOWN, story_screen
from omega.lifecycle.states import State
from omega.model.outcomes import Verdict
from omega.reports.stories import job as jobs
from omega.reports.stories import machine as machines
from omega.reports.stories.events import Story
from omega.reports.stories.runs import NOT_SEARCHED
from omega.store.inquiries import JobTransaction, RecordedClaim, Rival
from omega.store.stories import (
    JobRecords,
    MachineRecords,
    PastRun,
    RecordedEviction,
    RecordedVisit,
    RunEnd,
    Searched,
)
from omega.terminal.terminal import PrintableConsole
from tests.unit.cli.hostile_texts import groups, raw_in, without_styles
from tests.unit.cli.job.test_screens import a_status

AT_MS = 1_700_000_900_000
SOME = Searched(3, AT_MS, are_all=True)


def shown(story: Story) -> str:
    console = PrintableConsole(width=100)
    with console.capture() as capture:
        console.print(story_screen(story))
    return capture.get()


def a_transaction(*claims: RecordedClaim, at_ms: int = AT_MS, by: str = "batch") -> JobTransaction:
    granted = sum(it.verdict is Verdict.ACCEPTED for it in claims)
    return JobTransaction(UUID(int=at_ms), by, "0", at_ms, granted, len(claims) - granted, claims)


def records(
    *transactions: JobTransaction,
    runs: tuple[PastRun, ...] = (),
    evictions: tuple[RecordedEviction, ...] = (),
    name: str = "m1",
) -> JobRecords:
    return JobRecords(
        transactions=transactions,
        evictions=evictions,
        runs=runs,
        are_all_runs=True,
        searched=SOME,
        names={1: name},
    )


def words(told: JobRecords, state: State = State.RUNNING) -> list[tuple[str, str]]:
    story = jobs.told_story(told, a_status(state), ())
    return [(it.what.value, it.told) for it in story.events][2:]


def test_refusals_are_counted_by_verdict_and_rival_and_the_rest_by_number() -> None:
    rival = Rival(UUID(int=9), "service", "1", 4, AT_MS - 5)
    stale = RecordedClaim(0, 1, Verdict.STALE, rival)
    over = RecordedClaim(1, 1, Verdict.OVERCOMMIT)
    quota = RecordedClaim(2, 1, Verdict.QUOTA, rival)
    told = JobTransaction(
        UUID(int=1), "batch", "0", AT_MS, granted=0, refused=9, claims=(stale, stale, over, quota)
    )

    assert [
        (
            "refused",
            "9 claims: 2 stale, taken by service 1 for job 4; 1 overcommit; 1 quota; 5 more",
        )
    ] == words(records(told))


def test_a_run_is_told_with_the_commit_that_began_it() -> None:
    placed = a_transaction(RecordedClaim(0, 1, Verdict.ACCEPTED))
    mine = PastRun(7, 0, 1, AT_MS - 3, None, None)
    earlier = PastRun(7, 0, 1, AT_MS - 60_000, AT_MS - 50_000, RunEnd.LOST)

    assert [
        ("placed", f"task 0 on m1: {NOT_SEARCHED}"),
        ("lost", "task 0 on m1: the machine failed, left or shrank"),
        ("placed", "task 0 on m1"),
    ] == words(records(placed, runs=(mine, earlier)))


def test_of_a_transaction_that_is_cut_every_run_counts_as_told() -> None:
    claims = (RecordedClaim(0, 1, Verdict.ACCEPTED),)
    placed = JobTransaction(UUID(int=1), "batch", "0", AT_MS, 200, 0, claims)
    run = PastRun(7, 150, 2, AT_MS - 3, None, None)

    assert [("placed", "200 tasks")] == words(records(placed, runs=(run,)))


def test_a_rest_of_a_broken_gang_is_evicted_for_nobody_that_is_known() -> None:
    lost = RecordedEviction(UUID(int=3), "batch", "0", AT_MS, 7, 1, 1, None, ())
    run = PastRun(7, 1, 1, AT_MS - 50, AT_MS - 1, RunEnd.EVICTED)
    placed = a_transaction(RecordedClaim(1, 1, Verdict.ACCEPTED), at_ms=AT_MS - 49)

    assert [("placed", "task 1 on m1"), ("evicted", "task 1 on m1")] == words(
        records(placed, runs=(run,), evictions=(lost,))
    )


def test_of_a_machine_the_last_who_was_granted_it_is_the_rival() -> None:
    def visit(number: int, job: int, verdict: Verdict) -> RecordedVisit:
        return RecordedVisit(
            UUID(int=number), f"kind{number}", "0", AT_MS + number, (job,), (0,), (verdict,)
        )

    told = MachineRecords(
        visits=(
            visit(4, 4, Verdict.STALE),
            visit(3, 3, Verdict.GANG_BROKEN),
            visit(2, 2, Verdict.ACCEPTED),
            visit(1, 1, Verdict.OVERCOMMIT),
        ),
        evictions=(),
        runs=(),
        are_all_runs=True,
        searched=SOME,
    )

    story = machines.told_story(told, 1, "m1")

    assert [
        ("refused", "task 0 of job 1: 1 overcommit"),
        ("placed", "task 0 of job 2"),
        ("refused", "task 0 of job 3: 1 gang broken"),
        ("refused", "task 0 of job 4: 1 stale, taken by kind2 0 for job 2"),
    ] == [(it.what.value, it.told) for it in story.events]


def test_of_a_long_story_the_beginning_and_the_end_are_shown() -> None:
    total = FIRST_SHOWN + LAST_SHOWN + 5
    transactions = [
        a_transaction(RecordedClaim(0, 1, Verdict.STALE), at_ms=AT_MS + number)
        for number in range(total - 2)
    ]

    text = shown(jobs.told_story(records(*reversed(transactions)), a_status(State.RUNNING), ()))

    assert "5 events left out; --json has all" in text
    assert FIRST_SHOWN + LAST_SHOWN == sum(":" in line[:12] for line in text.splitlines())


@pytest.mark.parametrize("text", groups())
def test_nothing_raw_reaches_the_terminal(text: str) -> None:
    told = records(a_transaction(RecordedClaim(0, 1, Verdict.ACCEPTED), by=text), name=text)

    story = jobs.told_story(told, a_status(State.RUNNING), ())

    assert [] == raw_in(without_styles(shown(story)))
