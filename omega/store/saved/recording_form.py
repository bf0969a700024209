"""Recorded transactions as lines of a recording, and back.

Goal     One place that knows how a recorded transaction is written.
Promise  What is read back is what was written. A line whose parts contradict each other is refused
         with its field: nothing that the judge takes for granted is taken from a file unchecked.
Source   docs/decisions/0057-replay.md; omega.store.saved.recording_lines.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

import numpy as np

from omega.cell.commit_context import NO_VICTIMS, CommitContext, Victims
from omega.cell.quota_balances import NO_QUOTA_BALANCES, QuotaBalances
from omega.errors import BadInput
from omega.model.arrays import Amounts, Ids, integers
from omega.model.claims import (
    NO_ALTERNATES,
    NO_EVICTIONS,
    Alternates,
    Claims,
    ConflictRule,
    Evictions,
    JobSlice,
    Transaction,
)
from omega.model.machines import MachineRows
from omega.model.quotas import BUDGETS
from omega.model.resources import KINDS, Kind
from omega.store.saved.recorded import NO_TOKEN, Against, RecordedCommit
from omega.store.saved.recording_lines import (
    AgainstPart,
    AlternatesPart,
    CommitLine,
    EvictionsPart,
    QuotasPart,
    RowsPart,
    VictimsPart,
)


def line_of(recorded: RecordedCommit) -> CommitLine:
    """Return the line of a recorded transaction."""
    transaction, claims = recorded.transaction, recorded.transaction.claims
    others, evictions = claims.alternates, claims.evictions
    return CommitLine(
        at_ms=recorded.at_ms,
        id=str(transaction.id),
        rule=transaction.rule.value,
        jobs=[(part.job, part.grants_min, part.claims.stop) for part in transaction.jobs],
        task=claims.task.tolist(),
        machine=claims.machine.tolist(),
        seen=claims.seen.tolist(),
        shape=claims.shape.tolist(),
        shape_rows=len(claims.shapes),
        shapes=_by_kind(claims.shapes),
        alternates=AlternatesPart(
            claim=others.claim.tolist(),
            machine=others.machine.tolist(),
            seen=others.seen.tolist(),
            shape=others.shape.tolist(),
        )
        if len(others)
        else None,
        evictions=EvictionsPart(
            claim=evictions.claim.tolist(),
            job=evictions.job.tolist(),
            task=evictions.task.tolist(),
        )
        if len(evictions)
        else None,
        verdicts=recorded.verdicts.tolist(),
        landed=recorded.machine.tolist(),
        evicted=list(recorded.evicted),
        against=None if recorded.against is None else _against_part(recorded.against),
    )


def recorded_in(line: CommitLine, kind: str, replica: str) -> RecordedCommit:
    """Return the recorded transaction of a line. Raises BadInput, with the field."""
    claims = _claims(line)
    stops = [stop for _, _, stop in line.jobs]
    if stops != sorted(stops) or (stops or [0])[-1] != len(claims):
        raise BadInput("the jobs do not end where the claims do", field="jobs")
    if len({job for job, _, _ in line.jobs}) != len(line.jobs):
        raise BadInput("a job occurs twice", field="jobs")
    jobs = tuple(
        JobSlice(job, NO_TOKEN, grants_min, slice(first, stop))
        for (job, grants_min, stop), first in zip(line.jobs, [0, *stops], strict=False)
    )
    _same_length("task", len(claims), verdicts=line.verdicts, landed=line.landed)
    rule = ConflictRule(line.rule)
    return RecordedCommit(
        at_ms=line.at_ms,
        transaction=Transaction(UUID(line.id), kind, replica, rule, jobs, claims),
        verdicts=np.array(line.verdicts, dtype=np.int8),
        machine=integers(line.landed),
        evicted=tuple(line.evicted),
        against=None if line.against is None else _against(line.against, len(jobs), len(claims)),
    )


def _claims(line: CommitLine) -> Claims:
    count = len(line.task)
    _same_length("task", count, machine=line.machine, seen=line.seen, shape=line.shape)
    _within("shape", line.shape, line.shape_rows)
    alternates, evictions = NO_ALTERNATES, NO_EVICTIONS
    if (others := line.alternates) is not None:
        columns = {"machine": others.machine, "seen": others.seen, "shape": others.shape}
        _same_length("alternates.claim", len(others.claim), **columns)
        _refer("alternates.claim", others.claim, count)
        _within("alternates.shape", others.shape, line.shape_rows)
        named = {*enumerate(line.machine), *zip(others.claim, others.machine, strict=True)}
        if len(named) != count + len(others.claim):
            raise BadInput("a claim names a machine twice", field="alternates.machine")
        alternates = Alternates(
            np.array(others.claim, dtype=np.intp),
            integers(others.machine),
            integers(others.seen),
            np.array(others.shape, dtype=np.intp),
        )
    if (victims := line.evictions) is not None:
        _same_length("evictions.claim", len(victims.claim), job=victims.job, task=victims.task)
        _refer("evictions.claim", victims.claim, count)
        evictions = Evictions(
            np.array(victims.claim, dtype=np.intp),
            integers(victims.job),
            np.array(victims.task, dtype=np.intp),
        )
    return Claims(
        task=np.array(line.task, dtype=np.intp),
        machine=integers(line.machine),
        seen=integers(line.seen),
        shape=np.array(line.shape, dtype=np.intp),
        shapes=_amounts("shapes", line.shapes, line.shape_rows),
        alternates=alternates,
        evictions=evictions,
    )


def _against_part(against: Against) -> AgainstPart:
    rows, context = against.rows, against.context
    return AgainstPart(
        held=context.lease_held.tolist(),
        minimum=context.minimum.tolist(),
        placed=context.placed.tolist(),
        precedence=context.precedence.tolist(),
        unplaced=context.unplaced.tolist(),
        rows=RowsPart(
            id=rows.id.tolist(),
            capacity=_by_kind(rows.capacity),
            used=_by_kind(rows.used),
            sequence=rows.sequence.tolist(),
            revision=rows.revision.tolist(),
            state=rows.state.tolist(),
        ),
        victims=_victims_part(context.victims),
        quotas=_quotas_part(context.quota_balances),
    )


def _victims_part(victims: Victims) -> VictimsPart | None:
    if not len(victims.distinct_job):
        return None
    return VictimsPart(
        job=victims.job.tolist(),
        task=victims.task.tolist(),
        machine=victims.machine.tolist(),
        amounts=_by_kind(victims.amounts),
        about=victims.distinct_job.tolist(),
        yields_to=victims.yields_to.tolist(),
        minimum=victims.minimum.tolist(),
        placed=victims.placed.tolist(),
        own=victims.own.tolist(),
    )


def _quotas_part(balances: QuotaBalances) -> QuotasPart | None:
    if not balances.drawn_by:
        return None
    return QuotasPart(
        left=balances.left.tolist(),
        drawn_by=[(job, list(rows)) for job, rows in sorted(balances.drawn_by.items())],
        running=sorted(balances.running.items()),
    )


def _against(part: AgainstPart, jobs: int, claims: int) -> Against:
    """Return what a transaction of so many jobs and claims was judged against."""
    rows = part.rows
    columns = {"minimum": part.minimum, "placed": part.placed, "precedence": part.precedence}
    _same_length("jobs", jobs, held=part.held, **columns)
    _same_length("task", claims, unplaced=part.unplaced)
    numbers = {"sequence": rows.sequence, "revision": rows.revision, "state": rows.state}
    _same_length("rows.id", len(rows.id), **numbers)
    _ascending("rows.id", rows.id)
    if part.victims is not None and not set(part.victims.machine) <= set(rows.id):
        raise BadInput("the row of a machine is not there", field="victims.machine")
    return Against(
        MachineRows(
            integers(rows.id),
            _amounts("rows.capacity", rows.capacity, len(rows.id)),
            _amounts("rows.used", rows.used, len(rows.id)),
            integers(rows.sequence),
            integers(rows.revision),
            np.array(rows.state, dtype=np.int8),
        ),
        CommitContext(
            lease_held=np.array(part.held, dtype=np.bool_),
            minimum=integers(part.minimum),
            placed=integers(part.placed),
            precedence=integers(part.precedence),
            unplaced=np.array(part.unplaced, dtype=np.bool_),
            victims=NO_VICTIMS if part.victims is None else _victims(part.victims, jobs),
            quota_balances=NO_QUOTA_BALANCES if part.quotas is None else _quotas(part.quotas),
        ),
    )


def _victims(part: VictimsPart, jobs: int) -> Victims:
    count, about = len(part.job), len(part.about)
    _same_length("victims.job", count, task=part.task, machine=part.machine)
    facts = {"yields_to": part.yields_to, "minimum": part.minimum, "placed": part.placed}
    _same_length("victims.about", about, **facts)
    _ascending("victims.about", part.about)
    names = list(zip(part.job, part.task, strict=True))
    if names != sorted(set(names)) or not set(part.job) <= set(part.about):
        raise BadInput("these are no ascending tasks of the jobs it is about", field="victims.job")
    if len(part.own) != jobs or any(len(row) != about for row in part.own):
        raise BadInput(f"it has not {jobs} times {about} entries", field="victims.own")
    return Victims(
        job=integers(part.job),
        task=np.array(part.task, dtype=np.intp),
        machine=integers(part.machine),
        amounts=_amounts("victims.amounts", part.amounts, count),
        distinct_job=integers(part.about),
        yields_to=integers(part.yields_to),
        minimum=integers(part.minimum),
        placed=integers(part.placed),
        own=np.array(part.own, dtype=np.bool_).reshape(jobs, about),
    )


def _quotas(part: QuotasPart) -> QuotaBalances:
    drawn_by = {job: tuple(rows) for job, rows in part.drawn_by}
    running = dict(part.running)
    if not drawn_by.keys() <= running.keys():
        raise BadInput("what runs of a job is not told", field="quotas.running")
    _within("quotas.drawn_by", [row for rows in drawn_by.values() for row in rows], len(part.left))
    return QuotaBalances(integers(part.left).reshape(-1, BUDGETS), drawn_by, running)


def _by_kind(amounts: Amounts) -> dict[str, list[int]]:
    """Return the columns that are not zero everywhere, by the kind's name."""
    return {kind.column: amounts[:, kind].tolist() for kind in Kind if amounts[:, kind].any()}


def _amounts(field: str, by_kind: Mapping[str, Sequence[int]], rows: int) -> Amounts:
    _same_length(field, rows, **by_kind)
    amounts = np.zeros((rows, KINDS), dtype=np.int64)
    for name, values in by_kind.items():
        amounts[:, Kind[name.upper()]] = values
    return amounts


def _same_length(of: str, length: int, **columns: Sequence[object]) -> None:
    for name, values in columns.items():
        if len(values) != length:
            raise BadInput(f"{len(values)} entries, where {of} has {length}", field=name)


def _within(field: str, numbers: Sequence[int], stop: int) -> None:
    if numbers and max(numbers) >= stop:
        raise BadInput(f"{max(numbers)} is not below {stop}", field=field)


def _refer(field: str, positions: Sequence[int], count: int) -> None:
    """Refuse positions of claims that do not ascend, or that are not there."""
    if list(positions) != sorted(positions):
        raise BadInput("the positions do not ascend", field=field)
    _within(field, positions, count)


def _ascending(field: str, numbers: Sequence[int]) -> Ids:
    if list(numbers) != sorted(set(numbers)):
        raise BadInput("the numbers do not ascend", field=field)
    return integers(numbers)
