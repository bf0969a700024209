"""The slow twin: the commit rule claim by claim, as plainly as it can be written.

Goal     An oracle that a reader checks by eye against the rule, and a machine against the judge.
Promise  No array arithmetic, no shortcut: one loop over jobs, one over claims, dictionaries.
Source   docs/decisions/0003-the-commit-rule.md, rules 1 to 5 and 8.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from omega.cell.judge import Standing
from omega.model.arrays import integers
from omega.model.claims import ConflictRule, Transaction
from omega.model.machines import MachineRows, MachineState
from omega.model.outcomes import Outcome, Verdict


@dataclass
class PlainMachine:
    """One machine, as plain as can be."""

    capacity: list[int]
    used: list[int]
    sequence: int
    revision: int
    state: int

    def has_room_for(self, asked: list[int]) -> bool:
        """Say whether the machine can take so much more, in every kind."""
        return all(
            used + more <= capacity
            for used, more, capacity in zip(self.used, asked, self.capacity, strict=True)
        )

    def take(self, asked: list[int]) -> None:
        """Count the amounts as used."""
        self.used = [used + more for used, more in zip(self.used, asked, strict=True)]

    def give_back(self, asked: list[int]) -> None:
        """Count the amounts as free again."""
        self.used = [used - less for used, less in zip(self.used, asked, strict=True)]


@dataclass(frozen=True)
class PlainClaim:
    """One claim, and what the store knows of its task."""

    task: int
    machine: int
    seen: int
    asked: list[int]
    lease_held: bool
    unplaced: bool


def judge_slowly(rows: MachineRows, transaction: Transaction, standing: Standing) -> Outcome:
    """Do what `omega.cell.judge.judge` does, slowly."""
    machines = plain_machines(rows)
    claims = plain_claims(transaction, standing)
    verdicts: list[Verdict] = []

    for number, job in enumerate(transaction.jobs):
        granted: dict[int, PlainClaim] = {}  # by task
        for at in range(job.claims.start, job.claims.stop):
            claim = claims[at]
            verdict = _weigh(claim, machines.get(claim.machine), transaction.rule, granted)
            if verdict is Verdict.ACCEPTED:
                machines[claim.machine].take(claim.asked)
                granted[claim.task] = claim
            verdicts.append(verdict)

        if len(granted) < max(job.minimum, standing.lacking[number]):
            for claim in granted.values():
                machines[claim.machine].give_back(claim.asked)
            for at in range(job.claims.start, job.claims.stop):
                if verdicts[at] is Verdict.ACCEPTED:
                    verdicts[at] = Verdict.GANG_BROKEN

    granted_on = {
        claim.machine
        for claim, verdict in zip(claims, verdicts, strict=True)
        if verdict is Verdict.ACCEPTED
    }
    for machine in granted_on:
        machines[machine].sequence += 1
        machines[machine].revision += 1
    return Outcome(np.array(verdicts, dtype=np.int8), fresh=machine_rows(machines))


def _weigh(
    claim: PlainClaim,
    machine: PlainMachine | None,
    rule: ConflictRule,
    granted: Collection[int],
) -> Verdict:
    """Judge one claim against the machine as earlier claims left it; the first reason counts."""
    if not claim.lease_held:
        return Verdict.LEASE_LOST
    if not claim.unplaced or claim.task in granted:
        return Verdict.ALREADY_PLACED
    if machine is None or machine.state == MachineState.GONE:
        return Verdict.GONE
    if machine.state != MachineState.OPEN:
        return Verdict.CLOSED
    if rule is ConflictRule.SEQUENCE and claim.seen != machine.sequence:
        return Verdict.STALE
    return Verdict.ACCEPTED if machine.has_room_for(claim.asked) else Verdict.OVERCOMMIT


def plain_claims(transaction: Transaction, standing: Standing) -> list[PlainClaim]:
    """Return the claims one by one."""
    claims = transaction.claims
    return [
        PlainClaim(
            task=int(claims.task[at]),
            machine=int(claims.machine[at]),
            seen=int(claims.seen[at]),
            asked=claims.shapes[claims.shape[at]].tolist(),
            lease_held=bool(standing.lease_held[number]),
            unplaced=bool(standing.unplaced[at]),
        )
        for number, job in enumerate(transaction.jobs)
        for at in range(job.claims.start, job.claims.stop)
    ]


def plain_machines(rows: MachineRows) -> dict[int, PlainMachine]:
    """Return the rows as plain machines by id."""
    return {
        int(rows.id[at]): PlainMachine(
            capacity=rows.capacity[at].tolist(),
            used=rows.used[at].tolist(),
            sequence=int(rows.sequence[at]),
            revision=int(rows.revision[at]),
            state=int(rows.state[at]),
        )
        for at in range(len(rows))
    }


def machine_rows(machines: dict[int, PlainMachine]) -> MachineRows:
    """Return plain machines as rows."""
    ids = sorted(machines)
    if not ids:
        return MachineRows.none()
    return MachineRows(
        id=integers(ids),
        capacity=integers([machines[machine].capacity for machine in ids]),
        used=integers([machines[machine].used for machine in ids]),
        sequence=integers([machines[machine].sequence for machine in ids]),
        revision=integers([machines[machine].revision for machine in ids]),
        state=np.array([machines[machine].state for machine in ids], dtype=np.int8),
    )


def differences(expected: Outcome, actual: Outcome) -> list[str]:
    """Say in words where two outcomes of one transaction differ; empty if nowhere."""
    found = [
        f"claim {claim}: {Verdict(int(want)).name} expected, {Verdict(int(got)).name} given"
        for claim, (want, got) in enumerate(zip(expected.verdicts, actual.verdicts, strict=True))
        if want != got
    ]
    return found + row_differences(expected.fresh, actual.fresh)


def row_differences(expected: MachineRows, actual: MachineRows) -> list[str]:
    """Say in words where two sets of rows differ; empty if nowhere."""
    wanted, got = plain_machines(expected), plain_machines(actual)
    return [
        f"machine {machine}: {wanted.get(machine)} expected, {got.get(machine)} given"
        for machine in sorted(wanted.keys() | got.keys())
        if wanted.get(machine) != got.get(machine)
    ]
