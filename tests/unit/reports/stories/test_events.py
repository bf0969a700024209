"""Events of a story: their order, and which of them are one."""

from omega.reports.stories.events import Happened, Place, StoryEvent, in_time

AT_MS = 1_000


def event(what: Happened, at_ms: int, *tasks: int, by: str | None = None) -> StoryEvent:
    places = tuple(Place(1, task, "m1") for task in tasks)
    return StoryEvent(
        what=what,
        at_ms=at_ms,
        until_ms=at_ms,
        by=by,
        transaction=by,
        tasks=len(tasks),
        places=places,
    )


def test_the_end_of_a_job_is_last_though_a_task_ended_a_little_later() -> None:
    finished = event(Happened.FINISHED, AT_MS)
    early, late = (event(Happened.ENDED, AT_MS + after, 0) for after in (-1, 1))

    assert [Happened.ENDED, Happened.FINISHED] == [
        it.what for it in in_time([finished, late, early])
    ]


def test_what_happened_to_tasks_one_after_another_is_one_event() -> None:
    (ended,) = in_time([event(Happened.ENDED, AT_MS + task, task) for task in range(3)])

    assert (AT_MS, AT_MS + 2, 3) == (ended.at_ms, ended.until_ms, ended.tasks)
    assert [0, 1, 2] == [place.task for place in ended.places]


def test_what_two_schedulers_did_is_two_events() -> None:
    told = in_time([event(Happened.PLACED, AT_MS + n, n, by=f"batch {n}") for n in range(2)])

    assert ["batch 0", "batch 1"] == [it.by for it in told]


def test_things_of_one_moment_are_told_as_they_follow_from_each_other() -> None:
    shuffled = [event(what, AT_MS) for what in reversed(Happened)]

    assert list(Happened) == [it.what for it in in_time(shuffled)]
