"""Hypothesis strategies: small crowded cells and the transactions that fight over them.

Goal     Reach every verdict often, with examples small enough to read when one fails.
Promise  Amounts are tiny, so that room runs out; ids overlap, so that claims collide.
Source   docs/decisions/0003-the-commit-rule.md; Hypothesis shrinks towards less of everything.
"""

from dataclasses import dataclass
from uuid import UUID

import numpy as np
from hypothesis import strategies as st

from omega.cell.judge import Standing
from omega.model.arrays import integers
from omega.model.claims import Claims, ConflictRule, Transaction
from omega.model.machines import MachineRows, MachineState
from omega.model.resources import KINDS, Kind
from omega.testing.builders import Stretch, a_standing

CONTESTED = (Kind.CPU_MILLI, Kind.MEMORY_MIB, Kind.GPU_0, Kind.GPU_1)
"""The kinds that examples use; the rest stay at 0, as on most machines."""

MACHINE_IDS = st.integers(1, 6)
TASKS = st.integers(0, 7)


@dataclass(frozen=True, eq=False)
class Case:
    """Everything that a judge is given."""

    rows: MachineRows
    transaction: Transaction
    standing: Standing

    def __repr__(self) -> str:
        """Show what a reader needs of a failing example."""
        jobs = [
            f"job {part.job}, minimum {part.minimum}, lacking {lacking},"
            f" {'held' if held else 'lost'}: claims {part.claims.start}-{part.claims.stop}"
            for part, lacking, held in zip(
                self.transaction.jobs, self.standing.lacking, self.standing.lease_held, strict=True
            )
        ]
        claims = self.transaction.claims
        return "\n".join(
            [
                f"rule {self.transaction.rule.value}",
                *jobs,
                *(
                    f"claim {at}: task {claims.task[at]} on {claims.machine[at]}"
                    f" (seen {claims.seen[at]}), asks {claims.demand[at].tolist()},"
                    f" unplaced {self.standing.unplaced[at]}"
                    for at in range(len(claims))
                ),
                *(
                    f"machine {self.rows.id[at]}: {self.rows.used[at].tolist()} used of"
                    f" {self.rows.capacity[at].tolist()}, sequence {self.rows.sequence[at]},"
                    f" state {MachineState(int(self.rows.state[at])).name}"
                    for at in range(len(self.rows))
                ),
            ]
        )


@st.composite
def machine_rows(draw: st.DrawFn) -> MachineRows:
    """Draw up to six machines, some of them full, draining, down or gone."""
    ids = sorted(draw(st.sets(MACHINE_IDS)))
    capacity = np.zeros((len(ids), KINDS), dtype=np.int64)
    used = np.zeros_like(capacity)
    for at in range(len(ids)):
        for kind in CONTESTED:
            capacity[at, kind] = draw(st.integers(0, 6))
            used[at, kind] = draw(st.integers(0, int(capacity[at, kind])))
    states = st.sampled_from([MachineState.OPEN] * 7 + list(MachineState)[1:])
    sequence = [draw(st.integers(1, 3)) for _ in ids]
    return MachineRows(
        id=integers(ids),
        capacity=capacity,
        used=used,
        sequence=integers(sequence),
        revision=integers([number + draw(st.integers(0, 2)) for number in sequence]),
        state=np.array([draw(states) for _ in ids], dtype=np.int8),
    )


@st.composite
def claims_on(draw: st.DrawFn, rows: MachineRows) -> Claims:
    """Draw one job's claims: seen fresh or stale, tasks and machines repeated, some unknown."""
    shapes = draw(st.lists(demands(), min_size=1, max_size=2))
    tasks = draw(st.lists(TASKS, max_size=6))
    machines = [draw(MACHINE_IDS) for _ in tasks]
    now = dict(zip(rows.id.tolist(), rows.sequence.tolist(), strict=True))
    return Claims(
        task=np.array(tasks, dtype=np.intp),
        machine=integers(machines),
        seen=integers(
            [now.get(machine, 0) - draw(st.sampled_from([0, 0, 1])) for machine in machines]
        ),
        shape=np.array([draw(st.integers(0, len(shapes) - 1)) for _ in tasks], dtype=np.intp),
        shapes=np.array(shapes, dtype=np.int64),
    )


@st.composite
def demands(draw: st.DrawFn) -> list[int]:
    """Draw what one task asks for, in every kind; GPU slots in the same row as the rest."""
    row = [0] * KINDS
    for kind in CONTESTED:
        row[kind] = draw(st.integers(0, 3))
    return row


@st.composite
def stretches(draw: st.DrawFn, rows: MachineRows, job: int) -> Stretch:
    """Draw one job's part of a transaction: incremental, all-or-nothing, or with a minimum."""
    claims = draw(claims_on(rows))
    minimum = draw(st.sampled_from([0, 0, len(claims), draw(st.integers(0, len(claims) + 1))]))
    return job, UUID(int=job), minimum, claims


@st.composite
def cases(draw: st.DrawFn, rule: ConflictRule | None = None) -> Case:
    """Draw a crowded cell, a transaction of up to four jobs, and how those jobs stand."""
    rows = draw(machine_rows())
    jobs = draw(st.lists(st.integers(1, 9), unique=True, max_size=4))
    transaction = Transaction.of(
        [draw(stretches(rows, job)) for job in jobs],
        id=UUID(int=draw(st.integers(0, 2**64))),
        scheduler="batch",
        replica="0",
        rule=rule or draw(st.sampled_from(ConflictRule)),
    )
    standing = a_standing(
        transaction,
        lost=[job for job in jobs if draw(st.sampled_from([False] * 7 + [True]))],
        lacking={job: draw(st.sampled_from([0, 0, 0, 1, 3])) for job in jobs},
        placed={job: draw(st.sets(TASKS, max_size=2)) for job in jobs},
    )
    return Case(rows, transaction, standing)


@st.composite
def single_claims(draw: st.DrawFn) -> Case:
    """Draw a case of one claim of one job: where the two conflict rules can be compared."""
    rows = draw(machine_rows())
    claims = draw(claims_on(rows).filter(len))
    only = Claims(
        claims.task[:1], claims.machine[:1], claims.seen[:1], claims.shape[:1], claims.shapes
    )
    transaction = Transaction.of(
        [(1, UUID(int=1), draw(st.integers(0, 1)), only)],
        id=UUID(int=1),
        scheduler="batch",
        replica="0",
        rule=ConflictRule.SEQUENCE,
    )
    return Case(rows, transaction, a_standing(transaction))
