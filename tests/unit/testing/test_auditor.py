"""The auditor is silent on a sound store and names what a broken one did."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from omega.cell.partition import WHOLE, Parts
from omega.clock import ManualClock
from omega.errors import InvariantBroken
from omega.model.allocations import Allocations
from omega.model.arrays import Ids, Index, integers
from omega.model.claims import Transaction
from omega.model.jobs import JobSpec
from omega.model.machines import Changes, MachineRows, Machines, MachineState, Snapshot
from omega.model.outcomes import Outcome, Verdict
from omega.model.resources import machine_capacity
from omega.store.memory.store import MemoryStore
from omega.store.protocols import Store
from omega.store.status import Violation
from omega.testing.auditor import Auditor
from omega.testing.builders import (
    a_cell,
    a_claim,
    a_spec,
    a_transaction,
    claims_of_job,
    evicting,
    no_allocations,
    or_on,
    some_claims,
)
from omega.testing.contracts import StoreContract
from omega.testing.pass_through import PassThrough
from omega.testing.steps import a_leased_job, a_running_job, add_a_cell, claim, end, grant


class TestAuditedMemoryStore(StoreContract):
    """Under audit a sound store still passes: the auditor accuses nobody wrongly."""

    @pytest.fixture
    def store(self) -> Store:
        return Auditor(MemoryStore(ManualClock()))


class MisreportsRows(PassThrough):
    """Base of stores whose rows are not what they should be."""

    def report_rows(self, rows: MachineRows) -> MachineRows:
        return rows

    def snapshot(self) -> Snapshot:
        snapshot = super().snapshot()
        return replace(snapshot, rows=self.report_rows(snapshot.rows))

    def changes_since(self, mark: int, parts: Parts = WHOLE) -> Changes:
        changes = super().changes_since(mark, parts)
        return replace(changes, rows=self.report_rows(changes.rows))

    def commit(self, transaction: Transaction) -> Outcome:
        outcome = super().commit(transaction)
        return replace(outcome, fresh=self.report_rows(outcome.fresh))


class LosesGrants(MisreportsRows):
    def report_rows(self, rows: MachineRows) -> MachineRows:
        return replace(rows, used=np.zeros_like(rows.used))


class ForgetsToRaiseSequences(MisreportsRows):
    def report_rows(self, rows: MachineRows) -> MachineRows:
        return replace(rows, sequence=np.zeros_like(rows.sequence))


class RaisesSequencesAtEnds(MisreportsRows):
    def report_rows(self, rows: MachineRows) -> MachineRows:
        return replace(rows, sequence=rows.revision.copy())


class LowersRevisions(MisreportsRows):
    def report_rows(self, rows: MachineRows) -> MachineRows:
        return replace(rows, revision=-rows.revision)


class SellsTwiceWhatItHas(MisreportsRows):
    def add_machines(self, machines: Machines) -> Ids:
        return super().add_machines(replace(machines, capacity=machines.capacity * 2))

    def report_rows(self, rows: MachineRows) -> MachineRows:
        return replace(rows, capacity=rows.capacity // 2)


class TellsNoDeltas(PassThrough):
    def changes_since(self, mark: int, parts: Parts = WHOLE) -> Changes:
        return replace(super().changes_since(mark, parts), rows=MachineRows.none())


class GrantsWhatIsPlaced(PassThrough):
    def commit(self, transaction: Transaction) -> Outcome:
        outcome = super().commit(transaction)
        verdicts = np.where(outcome.verdicts == Verdict.ALREADY_PLACED, 0, outcome.verdicts)
        return replace(outcome, verdicts=verdicts.astype(np.int8))


class JudgesTheSameIdAnew(PassThrough):
    def commit(self, transaction: Transaction) -> Outcome:
        return super().commit(replace(transaction, id=a_transaction().id))


class CountsEndsWrongly(PassThrough):
    def end_tasks(self, job: Ids, task: Index, started_ms: Ids | None = None) -> int:
        return super().end_tasks(job, task, started_ms) + 1


class SplitsGangs(PassThrough):
    def submit(self, specs: Sequence[JobSpec]) -> list[int]:
        return super().submit([replace(spec, minimum=0) for spec in specs])


class CancelsNothing(PassThrough):
    def cancel(self, job: int) -> bool:
        return False


class LosesAllocations(PassThrough):
    def allocations(self) -> Allocations:
        return no_allocations()


class TellsNoEvictions(PassThrough):
    def commit(self, transaction: Transaction) -> Outcome:
        nobody = np.zeros(0, np.int64)
        return replace(super().commit(transaction), evicted_job=nobody, evicted_task=nobody)


class EvictsEquals(PassThrough):
    def submit(self, specs: Sequence[JobSpec]) -> list[int]:
        return super().submit(
            [replace(spec, precedence=0) if spec.name == "peer" else spec for spec in specs]
        )


class SparesTheRestOfGangs(PassThrough):
    def submit(self, specs: Sequence[JobSpec]) -> list[int]:
        minimums = [spec.minimum if spec.minimum < 5 else 0 for spec in specs]
        return super().submit(
            [replace(spec, minimum=minimum) for spec, minimum in zip(specs, minimums, strict=True)]
        )


class LosesNothing(PassThrough):
    def lose_tasks(self, machine: Ids) -> int:
        return 0


class CountsLossesWrongly(PassThrough):
    def enforce_notices(self) -> int:
        return super().enforce_notices() + 1


class CountsStatesWrongly(PassThrough):
    def set_state(self, machine: Ids, state: MachineState) -> int:
        return super().set_state(machine, state) + 1


class LandsElsewhere(PassThrough):
    def commit(self, transaction: Transaction) -> Outcome:
        outcome = super().commit(transaction)
        return replace(outcome, machine=transaction.claims.machine)


class AccusesItself(PassThrough):
    def verify(self) -> list[Violation]:
        return [Violation("an invariant", "machine 1", "does not hold")]


def a_day(store: Store) -> None:
    """Do what brings every planted bug to light: grants, refusals, ends, a gang, the same again."""
    one, two = add_a_cell(store, 2)
    job = a_leased_job(store, a_spec(4))
    again = a_transaction(claims_of_job(job, a_claim(0, machine=one)))
    store.commit(again)
    store.commit(again)
    grant(store, job, [1], [one])
    claim(store, job, [0], [two])  # placed already
    claim(store, job, [2], [two], cpu_milli=4_001)
    end(store, job, 0)
    gang = a_leased_job(store, a_spec(3, minimum=3))
    claim(store, gang, range(3), [two] * 3, cpu_milli=2_000)
    store.cancel(job.id)
    a_day_of_force(store)


def a_day_of_force(store: Store) -> None:
    """Evict, lose a machine and shrink another: whatever takes places away."""
    three, four = map(int, store.add_machines(a_cell(2, cpu_milli=6_000, first=3)))
    gang = a_running_job(store, a_spec(6, minimum=5), [three] * 3 + [four] * 3)
    peer = a_running_job(store, a_spec(name="peer", precedence=80), [three])
    a_running_job(store, a_spec(), [four])
    high = a_leased_job(store, a_spec(2, precedence=80))
    claims = evicting(
        some_claims([0, 1], [three] * 2), (0, gang.id, 0), (0, gang.id, 1), (1, peer.id, 0)
    )
    store.commit(a_transaction(claims_of_job(high, or_on(claims, (1, four)))))
    store.set_state(integers([three]), MachineState.DOWN)
    store.lose_tasks(integers([three]))
    store.resize(four, machine_capacity(500, 0, 0, 0), notice_ms=0)
    store.enforce_notices()


def an_audited_day(broken: Callable[[Store], Store]) -> Auditor:
    auditor = Auditor(broken(MemoryStore(ManualClock())))
    a_day(auditor)
    auditor.audit()
    return auditor


def test_a_day_with_a_sound_store_is_nothing_to_report() -> None:
    an_audited_day(PassThrough)


@pytest.mark.parametrize(
    ("broken", "accusation"),
    [
        (LosesGrants, "machine 1: use disagrees: expected {'cpu_milli': 1000}, store {}"),
        (ForgetsToRaiseSequences, "machine 1: sequence rose by 0 to 0"),
        (RaisesSequencesAtEnds, "machine 1: sequence rose by 1 to 3"),
        (LowersRevisions, "machine 1: revision went from 0 to -1"),
        (SellsTwiceWhatItHas, "machine 2: is oversold: {'cpu_milli': 4001} of {'cpu_milli': 4000"),
        (TellsNoDeltas, "machine 1: was granted on or changed, and no delta tells"),
        (GrantsWhatIsPlaced, "machine 2: task 0 of job 1 was granted twice"),
        (JudgesTheSameIdAnew, "was answered [0] and then [5]"),
        (CountsEndsWrongly, "1 live tasks were ended; the store says 2"),
        (SplitsGangs, "job 2 is a gang of at least 3 and has 2 tasks placed"),
        (CancelsNothing, "job 1 has 1 live tasks and was not cancelled"),
        (TellsNoEvictions, "machine 3: use disagrees"),
        (EvictsEquals, "of precedence 80, which yields to 90, was evicted by 80"),
        (SparesTheRestOfGangs, "job 3 is a gang of at least 5 and has 4 tasks placed"),
        (LosesNothing, "on dead machines [3] there is still ['task 0 of job 4',"),
        (CountsLossesWrongly, "2 tasks lost their places; the store says 3"),
        (CountsStatesWrongly, "1 states change; the store says 2"),
        (LandsElsewhere, "machine 3: use disagrees"),
        (AccusesItself, "the store accuses itself"),
    ],
)
def test_a_planted_bug_is_named(broken: Callable[[Store], Store], accusation: str) -> None:
    with pytest.raises(InvariantBroken) as caught:
        an_audited_day(broken)

    assert accusation in str(caught.value)


def test_a_lost_allocation_shows_in_a_full_audit() -> None:
    auditor = Auditor(LosesAllocations(MemoryStore(ManualClock())))
    (machine,) = add_a_cell(auditor, 1)
    a_running_job(auditor, a_spec(), [machine])

    with pytest.raises(InvariantBroken, match=r"allocations .* differ: \[\(1, 0, 1\)\]"):
        auditor.audit()


def test_the_accusation_tells_the_machines_story() -> None:
    with pytest.raises(InvariantBroken) as caught:
        an_audited_day(SellsTwiceWhatItHas)

    assert (
        "refused to task 0 of job 1: ALREADY_PLACED",
        "granted to task 2 of job 1: {'cpu_milli': 4001}",
    ) == caught.value.story


def test_the_auditor_takes_over_a_cell_that_runs_already() -> None:
    store = MemoryStore(ManualClock())
    (machine,) = add_a_cell(store, 1)
    job = a_running_job(store, a_spec(2), [machine] * 2)

    auditor = Auditor(store)
    ended = end(auditor, job, 0)
    auditor.audit()

    assert 1 == ended


def test_a_change_behind_the_auditors_back_is_noticed() -> None:
    store = MemoryStore(ManualClock())
    auditor = Auditor(store)
    (machine,) = add_a_cell(auditor, 1)
    a_running_job(store, a_spec(), [machine])

    with pytest.raises(InvariantBroken, match="use disagrees"):
        auditor.audit()
