"""What a page asks the store for by itself: one job, one machine, a list of jobs, an output.

Goal     Show details that the watcher does not keep.
Promise  One question is asked at a time, by one connection. An answer serves everybody for a
         second, a story for ten, so that ten who look at one job cost what one does. Answers are
         bounded.
Source   omega/reports, which the command line prints from, too.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from omega.clock import Clock
from omega.lifecycle.states import State
from omega.model.exits import STREAMS
from omega.reports.jobs import EXITS_MAX, JobReport, find_job, row_of
from omega.reports.machines import MachineReport
from omega.reports.stories.events import Story
from omega.reports.stories.job import job_story
from omega.reports.stories.machine import machine_story
from omega.store.protocols import ReaderStore
from omega.web.watcher import Watcher

FRESH_S: Final = 1.0
STORY_FRESH_S: Final = 10.0
"""A story is searched for in the history, and so it is read less often."""
STORY_EVENTS_MAX: Final = 500
"""Events of a story, the newest, that one answer lists."""
KEPT_MAX: Final = 256
"""Answers that are kept."""
JOBS_MAX: Final = 200
"""Jobs of one list."""
JOBS_READ_MAX: Final = 2_000
"""Jobs among which a list by tenant looks."""
TASKS_MAX: Final = 1_000
"""Tasks of a job or of a machine that one answer lists."""
NUMBER_MAX: Final = 2**31 - 1

Answer = str | None
"""A JSON document; None if there is no such thing."""


class Asking:
    """Answers questions about single things."""

    def __init__(self, store: ReaderStore, watcher: Watcher, clock: Clock) -> None:
        self._store = store
        self._watcher = watcher
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, ...], tuple[float, Answer]] = OrderedDict()

    def job(self, number: int) -> Answer:
        """Return all about a job."""
        return self._answer(("job", str(number)), lambda: self._job(number))

    def machine(self, number: int) -> Answer:
        """Return all about a machine."""
        return self._answer(("machine", str(number)), lambda: self._machine(number))

    def job_story(self, number: int) -> Answer:
        """Return what happened to a job."""
        key = ("job story", str(number))
        return self._answer(key, lambda: self._job_story(number), fresh_s=STORY_FRESH_S)

    def machine_story(self, number: int) -> Answer:
        """Return what happened on a machine."""
        key = ("machine story", str(number))
        return self._answer(key, lambda: self._machine_story(number), fresh_s=STORY_FRESH_S)

    def jobs(self, filters: Mapping[str, str]) -> Answer:
        """Return jobs, newest first, by state, kind, tenant and name."""
        asked = {name: filters.get(name, "") for name in ("state", "kind", "tenant", "name")}
        return self._answer(("jobs", *asked.values()), lambda: self._jobs(asked))

    def output(self, job: int, task: int, stream: str) -> Answer:
        """Return the end of what a task wrote."""
        key = ("output", str(job), str(task), stream)
        return self._answer(key, lambda: self._output(job, task, stream))

    def find(self, text: str) -> Answer:
        """Return where a text leads: to a job by number or name, or to a machine by name."""
        return self._answer(("find", text), lambda: self._find(text))

    def _answer(
        self,
        key: tuple[str, ...],
        ask: Callable[[], object | None],
        *,
        fresh_s: float = FRESH_S,
    ) -> Answer:
        with self._lock:
            now_s = self._clock.now()
            kept = self._kept.get(key)
            if kept is not None and now_s - kept[0] < fresh_s:
                return kept[1]
            told = ask()
            answer = None if told is None else json.dumps(told, separators=(",", ":"))
            self._kept[key] = self._clock.now(), answer
            self._kept.move_to_end(key)
            if len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
            return answer

    def _job(self, number: int) -> object | None:
        report = JobReport.read(self._store, number)
        if report is None:
            return None
        rows = report.rows()
        sizes = self._store.output_sizes(number)[:TASKS_MAX]
        return {
            **report.summary(),
            "tasks_shown": len(rows[:TASKS_MAX]),
            "places": [
                {**row, "id": self._watcher.machine_named(str(row["machine"]))}
                for row in rows[:TASKS_MAX]
            ],
            "outputs": [
                {"task": it.task, "stream": it.stream, "bytes": it.bytes_total}
                for it in sizes
                if it.bytes_total
            ],
        }

    def _machine(self, number: int) -> object | None:
        snapshot = self._watcher.machine(number)
        if snapshot is None:
            return None
        report = MachineReport.read(self._store, snapshot, 0)
        return {**report.summary(), "places": report.rows()[:TASKS_MAX]}

    def _job_story(self, number: int) -> object | None:
        job = self._store.job(number)
        if job is None:
            return None
        return _story(job_story(self._store, job, self._store.exits(number, exits_max=EXITS_MAX)))

    def _machine_story(self, number: int) -> object | None:
        snapshot = self._watcher.machine(number)
        if snapshot is None:
            return None
        return _story(machine_story(self._store, number, snapshot.names[0]))

    def _jobs(self, asked: Mapping[str, str]) -> object | None:
        state = State(asked["state"]) if asked["state"] in {it.value for it in State} else None
        reads = JOBS_READ_MAX if asked["tenant"] or asked["name"] else JOBS_MAX
        if asked["name"]:
            found = self._store.jobs_named(asked["name"], jobs_max=reads)
        else:
            found = self._store.jobs(state=state, scheduler=asked["kind"] or None, jobs_max=reads)
        kept = [
            job
            for job in found
            if (state is None or job.state is state)
            and asked["kind"] in ("", job.scheduler)
            and asked["tenant"] in ("", job.tenant)
        ]
        return {
            "rows": [row_of(job) for job in kept[:JOBS_MAX]],
            "among": reads if len(found) == reads else None,
        }

    def _output(self, job: int, task: int, stream: str) -> object | None:
        if stream not in STREAMS or task > NUMBER_MAX:
            return None
        output = self._store.output(job, task, stream)
        if output is None:
            return None
        return {"bytes": output.bytes_total, "text": bytes(output.tail).decode(errors="replace")}

    def _find(self, text: str) -> object | None:
        job = find_job(self._store, text) if text else None
        machine = self._watcher.machine_named(text)
        return {"job": job, "machine": machine}


def _story(story: Story) -> object:
    """Return a story as JSON types, with its newest events and how many are left out."""
    left_out = max(0, len(story.events) - STORY_EVENTS_MAX)
    kept = replace(story, events=story.events[left_out:])
    return {**kept.document(), "left_out": left_out}
