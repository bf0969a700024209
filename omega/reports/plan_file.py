"""A plan in a file: the document of `omega plan --json FILE`, read again.

Goal     Commit later what was planned before.
Promise  A file that is no plan, or was changed so that it cannot be one, is refused in one sentence
         with file and field. What it says is judged by the database all the same.
Source   docs/decisions/0053-plans-before-submission.md; omega.reports.plan, which writes it.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.model.arrays import integers
from omega.model.claims import Claims, Evictions
from omega.model.jobs import JobSpec
from omega.model.outcomes import Verdict
from omega.model.resources import KINDS, amounts
from omega.model.wire import spec_from_wire
from omega.store.planned import PlannedJob, PlannedOutcome


def read_plan(file: Path, new_id: UUID) -> tuple[PlannedJob, dict[int, str]]:
    """Return the plan of a file, and the names of its machines by id. Raises BadInput."""
    try:
        with file.open("rb") as source:
            text = source.read(LIMITS.file_bytes_max + 1)
        if len(text) > LIMITS.file_bytes_max:
            raise BadInput(f"it has more than {LIMITS.file_bytes_max:,} bytes", file=str(file))
        document = json.loads(text)
    except OSError as error:
        raise BadInput(f"it cannot be read: {error.strerror}", file=str(file)) from error
    except (ValueError, RecursionError) as error:
        raise BadInput("it is no JSON document: omega plan --json FILE", file=str(file)) from error
    try:
        summary, rows = document["summary"], document["rows"]
        spec = spec_from_wire(summary["spec"])
        evicted = tuple((_whole(it["job"]), _whole(it["task"])) for it in summary["evictions"])
        claims = _claims(spec, [row for row in rows if row["machine"] is not None])
        names = {_whole(row["machine_id"]): str(row["machine"]) for row in rows if row["machine"]}
    except (KeyError, TypeError, ValueError, AttributeError, BadInput) as error:
        raise BadInput(
            f"it is no plan that omega plan --json wrote ({type(error).__name__})", file=str(file)
        ) from error
    if not len(claims):
        raise BadInput("no task of its job has a place", file=str(file), field="rows")
    return PlannedJob(new_id, spec, claims, evicted), names


def what_changed(
    planned: PlannedJob, outcome: PlannedOutcome, names: Mapping[int, str]
) -> list[str]:
    """Return a sentence for each thing that is not as it was planned."""
    claims = planned.claims
    now = dict(zip(outcome.fresh.id.tolist(), outcome.fresh.sequence.tolist(), strict=True))
    told = dict.fromkeys(
        _difference(Verdict(int(verdict)), names[machine], seen, now.get(machine))
        for verdict, machine, seen in zip(
            outcome.verdicts, claims.machine.tolist(), claims.seen.tolist(), strict=True
        )
        if verdict not in (Verdict.ACCEPTED, Verdict.GANG_BROKEN)
    )
    if not told:
        more = sorted(set(outcome.evicted) ^ set(planned.evicted))
        some = ", ".join(f"task {task} of job {job}" for job, task in more[:5])
        return [f"other tasks would be evicted than were planned: {some or 'in another order'}"]
    return list(told)


def _difference(verdict: Verdict, name: str, seen: int, now: int | None) -> str:
    match verdict:
        case Verdict.STALE:
            return f"{name} has changed: its sequence was {seen}, and is {now}"
        case Verdict.GONE | Verdict.CLOSED:
            return f"{name} is {'gone' if verdict is Verdict.GONE else 'down or draining'}"
        case Verdict.PRECEDENCE:
            return f"what was to be evicted on {name} has ended, moved, or may not be evicted"
        case Verdict.QUOTA:
            return "too little is left of a quota of its tenant or its kind of scheduler"
    return f"{name}: {verdict.name.lower().replace('_', ' ')}"


def _claims(spec: JobSpec, rows: Sequence[Mapping[str, Any]]) -> Claims:
    shapes, shape = np.unique(
        integers([amounts(dict(row["amounts"])) for row in rows]).reshape(-1, KINDS),
        axis=0,
        return_inverse=True,
    )
    tasks = [_whole(row["task"]) for row in rows]
    if sorted(set(tasks)) != tasks or (tasks and not 0 <= tasks[0] <= tasks[-1] < spec.tasks):
        raise ValueError("tasks out of order")
    if (shapes < 0).any():
        raise ValueError("negative amounts")
    evictions = [
        (claim, _whole(job), _whole(task))
        for claim, row in enumerate(rows)
        for job, task in row["evicts"]
    ]
    return Claims(
        task=np.array(tasks, dtype=np.intp),
        machine=integers([_whole(row["machine_id"]) for row in rows]),
        seen=integers([_whole(row["sequence"]) for row in rows]),
        shape=shape.reshape(-1).astype(np.intp),
        shapes=shapes,
        evictions=Evictions(
            np.array([claim for claim, _, _ in evictions], dtype=np.intp),
            integers([job for _, job, _ in evictions]),
            np.array([task for _, _, task in evictions], dtype=np.intp),
        ),
    )


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError("no whole number")
    return value
