"""The cell in Postgres: machines, claims and quotas, by calls of its functions.

Goal     Pass arrays to the functions and return their answers. The functions decide; what methods
         do, their units and errors are in `omega/store/protocols.py`, and for `register_machine` in
         `omega/store/agents.py`.
Promise  A commit is one round trip. All machine rows of a read come from one statement.
Source   docs/decisions/0003-the-commit-rule.md, 0008-packed-rows.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from psycopg.types.json import Jsonb

from omega.cell.partition import WHOLE, Parts
from omega.limits import LIMITS
from omega.model.allocations import Allocations
from omega.model.arrays import Amounts, Codes, Ids, Index
from omega.model.claims import ConflictRule, Transaction
from omega.model.jobs import checked_gap
from omega.model.machines import Catalogue, Changes, Machines, MachineState, Snapshot
from omega.model.occupants import Occupants, Yielding
from omega.model.outcomes import Outcome
from omega.model.progress import JobProgress
from omega.model.quotas import Quota, QuotaScope, QuotaUse
from omega.model.resources import KINDS
from omega.store.postgres.allocations import read_allocations, read_own_allocations
from omega.store.postgres.connection import Link
from omega.store.postgres.json_text import decoded
from omega.store.postgres.packing import Big, Int, unpack_machines
from omega.store.status import Notice, Violation

_COMMIT = (
    "SELECT verdicts, landed, evicted_jobs, evicted_tasks, fresh, repeated"
    " FROM omega.commit_claims({})"
)


@dataclass(frozen=True, eq=False)
class _Profiles:
    """The names and attributes of all machines in one generation of the cell."""

    generation: int
    """A number of the cell that rises when machines join, when attributes or the precedence gap
    change, and when an incarnation begins (`incarnations.py`)."""
    names: tuple[str, ...]
    catalogue: Catalogue
    """The attributes that machines have, and the distinct values of each."""
    codes: Codes
    """The value of each machine in each attribute, by its number in the catalogue: (machines,
    attributes)."""


class PostgresCell:
    """The operations on machines, allocations and quotas."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._profiles: _Profiles | None = None

    def add_machines(self, machines: Machines) -> Ids:
        """Add machines; return their ids in order. Raises BadInput for a name already in use."""
        return np.asarray(self._encoded("add_machines", machines, list(machines.names)))

    def register_machine(self, machine: Machines, address: str | None = None) -> int:
        """Add one machine, or bring the one of its name up to date; return its id."""
        (name,) = machine.names
        return int(self._encoded("register_machine", machine, name, address))

    def _encoded(
        self, function: str, machines: Machines, names: list[str] | str, *more: str | None
    ) -> Any:  # noqa: ANN401 - ids, or an id
        """Encode machines and call a function with them, until it answers; return the answer."""
        # Encoding reads the catalogue first. If others add machines meanwhile, the generation has
        # changed, the function returns null, and the machines are encoded again.
        answer = None
        while answer is None:
            ((generation, stored),) = self._link.call(
                "SELECT generation, catalogue FROM omega.read_catalogue()"
            )
            catalogue, codes = _catalogue(stored).encode(machines)
            ((answer,),) = self._link.call(
                f"SELECT omega.{function}(%s, %s, %s, %s, %s{', %s' * len(more)})",
                (
                    generation,
                    names,
                    Int(machines.capacity.ravel()),
                    Jsonb({"names": catalogue.names, "values": catalogue.values}),
                    Int(codes.ravel()),
                    *more,
                ),
            )
        return answer

    def snapshot(self) -> Snapshot:
        """Read the whole cell; names and attributes are read only if the generation has changed."""
        while True:
            pieces = self._link.call(
                "SELECT mark, generation, omega.read_machines() FROM omega.read_mark()"
            )
            mark, generation, _ = pieces[0]
            if self._profiles is None or self._profiles.generation != generation:
                self._profiles = self._read_profiles()
            profiles = self._profiles
            if profiles.generation == generation:
                rows = unpack_machines(b"".join(packed for _, _, packed in pieces))
                return Snapshot(
                    rows, profiles.names, profiles.catalogue, profiles.codes, mark, generation
                )

    def _read_profiles(self) -> _Profiles:
        ((generation, stored, names, codes),) = self._link.call(
            "SELECT generation, catalogue, names, codes FROM omega.read_profiles()"
        )
        catalogue = _catalogue(stored)
        table = codes.astype(np.int32).reshape(len(names), len(catalogue.names))
        return _Profiles(generation, tuple(names), catalogue, table)

    def changes_since(self, mark: int, parts: Parts = WHOLE) -> Changes:
        """Read the rows in these parts that transactions from number `mark` on have written."""
        ((next_mark, generation, packed),) = self._link.call(
            "SELECT mark, generation, machines FROM omega.read_changes(%s, %s, %s)",
            (mark, parts.of, Int(parts.numbers)),
        )
        return Changes(unpack_machines(packed), next_mark, generation)

    def commit(self, transaction: Transaction) -> Outcome:
        """Judge the claims against the cell as it is now; apply the granted ones, atomically."""
        jobs, claims = transaction.jobs, transaction.claims
        others, evictions = claims.alternates, claims.evictions
        # Arrays of SQL count from 1, so positions in other arrays are sent with 1 added. The end of
        # a slice is its last claim counted from 1 already: `claims.stop` is sent as it is.
        parameters: tuple[Any, ...] = (
            transaction.id,
            transaction.scheduler,
            transaction.replica,
            transaction.rule is ConflictRule.SEQUENCE,
            Big([job.job for job in jobs]),
            [job.token for job in jobs],
            Int([job.grants_min for job in jobs]),
            Int([job.claims.stop for job in jobs]),
            Int(claims.task),
            Int(claims.machine),
            Big(claims.seen),
            Int(claims.shape + 1),
            Int(claims.shapes.ravel()),
        )
        if len(others) or len(evictions):
            parameters += (
                Int(others.claim + 1),
                Int(others.machine),
                Big(others.seen),
                Int(others.shape + 1),
                Int(evictions.claim + 1),
                Big(evictions.job),
                Int(evictions.task),
            )
        query = _COMMIT.format(", ".join(["%s"] * len(parameters)))
        ((verdicts, landed, evicted_jobs, evicted_tasks, fresh, repeated),) = self._link.call(
            query, parameters
        )
        if repeated:
            self._link.counts["repeated_commits"] += 1
        return Outcome(
            verdicts.astype(np.int8), landed, evicted_jobs, evicted_tasks, unpack_machines(fresh)
        )

    def end_tasks(self, job: Ids, task: Index, started_ms: Ids | None = None) -> int:
        """End those of these tasks that run, and free their amounts; return how many ran."""
        started = None if started_ms is None else Big(started_ms)
        ((ended,),) = self._link.call(
            "SELECT omega.end_tasks(%s, %s, %s)", (Big(job), Int(task), started)
        )
        return int(ended)

    def report_progress(self, job: Ids, steps: Ids, run_ms: Ids) -> None:
        """Note how many steps jobs have made and how many ms they have run, since submission."""
        self._link.call(
            "SELECT omega.report_progress(%s, %s, %s)", (Big(job), Big(steps), Big(run_ms))
        )

    def progress(self, job: Ids) -> JobProgress:
        """Read the progress of these jobs; of those without steps nothing is returned."""
        ((jobs, kinds, wanted, done, run_ms, tasks, since_ms),) = self._link.call(
            "SELECT jobs, kinds, wanted, done, run_ms, tasks, since_ms"
            " FROM omega.read_progress(%s)",
            (Big(job),),
        )
        return JobProgress(
            job=jobs,
            kind=tuple(kinds),
            wanted=wanted,
            done=done,
            run_ms=run_ms,
            tasks=tasks,
            since_ms=since_ms,
        )

    def occupants(self, machine: Ids) -> Occupants:
        """Read who runs on these machines."""
        assert len(machine) <= LIMITS.occupied_machines_max
        (row,) = self._link.call(
            "SELECT jobs, tasks, machines, started_ms, amounts, about AS distinct_jobs,"
            " precedences, yields_to, minimums, placed, running, schedulers, tenants"
            " FROM omega.read_occupants(%s)",
            (Int(machine),),
        )
        job, task, on, started_ms, amounts, distinct_job, precedence, yields_to, *rest = row
        minimum, placed, running, schedulers, tenants = rest
        return Occupants(
            job=job,
            task=task,
            machine=on,
            amounts=amounts.reshape(len(job), KINDS),
            started_ms=started_ms,
            distinct_job=distinct_job,
            precedence=precedence,
            yields_to=yields_to,
            minimum=minimum,
            placed=placed,
            running=running,
            scheduler=tuple(schedulers),
            tenant=tuple(tenants),
        )

    def yielding(self, precedence: int) -> Yielding:
        """Read how much of each machine is held by tasks that yield to a precedence."""
        ((machine, amounts),) = self._link.call(
            "SELECT machines, amounts FROM omega.read_yielding(%s)", (precedence,)
        )
        return Yielding(machine, amounts.reshape(len(machine), KINDS))

    def precedence_gap(self) -> int:
        """Return by how much a job's precedence must be higher to evict another's tasks."""
        ((gap,),) = self._link.call("SELECT precedence_gap FROM omega.cell")
        return int(gap)

    def set_precedence_gap(self, gap: int) -> None:
        """Change the gap for every commit from now on. Raises BadInput unless it is positive."""
        self._link.call("SELECT omega.set_precedence_gap(%s)", (checked_gap(gap),))

    def set_state(self, machine: Ids, state: MachineState) -> int:
        """Open, drain, take down or remove machines; return how many changed."""
        ((changed,),) = self._link.call(
            "SELECT omega.set_state(%s, %s::smallint)", (Int(machine), int(state))
        )
        return int(changed)

    def lose_tasks(self, machine: Ids) -> int:
        """Evict the tasks on those of the machines that are down or gone; return how many."""
        ((lost,),) = self._link.call(
            "SELECT omega.lose_tasks(%s)", (Int(machine),), repeats_lock_timeouts=False
        )
        return int(lost)

    def resize(self, machine: int, capacity: Amounts, *, notice_ms: int) -> None:
        """Change a machine's capacity (kinds,); claims are judged by the new one at once."""
        self._link.call(
            "SELECT omega.resize_machine(%s, %s, %s)", (machine, Int(capacity), notice_ms)
        )

    def expire_machines(self) -> list[int]:
        """Declare down the machines whose lease has run out; return them, ascending."""
        ((expired,),) = self._link.call("SELECT omega.expire_machines()")
        return [int(machine) for machine in expired]

    def enforce_notices(self) -> int:
        """Evict tasks above capacity on machines whose notice has ended; return how many."""
        # Machines whose notice has ended or is needed no more. One transaction for each of them,
        # because each locks jobs before its machine.
        machines = self._link.call("SELECT omega.notices_that_end()")
        evicted = 0
        for (machine,) in machines:
            ((tasks,),) = self._link.call(
                "SELECT omega.enforce_notice(%s)", (machine,), repeats_lock_timeouts=False
            )
            evicted += int(tasks)
        return evicted

    def set_quota(self, quota: Quota) -> None:
        """Limit what a tenant or a kind of scheduler may hold; running tasks are not evicted.

        Raises StoreUnavailable if the use of a new quota cannot be counted, because a transaction
        that began earlier has not ended. Until it is set again, such a quota grants nothing.
        """
        whose = (quota.scope.value, quota.name)
        ((counted,),) = self._link.call(
            "SELECT omega.set_quota(%s, %s, %s)", (*whose, Big(quota.row))
        )
        if not counted:
            # `set_quota` has committed, so every commit that begins from now on finds the quota.
            # The second transaction counts what earlier commits hold.
            self._link.call("SELECT omega.count_quota(%s, %s)", whose)

    def remove_quota(self, scope: QuotaScope, name: str) -> bool:
        """Remove a quota; return False if there was none."""
        ((removed,),) = self._link.call("SELECT omega.remove_quota(%s, %s)", (scope.value, name))
        return bool(removed)

    def quotas(self) -> list[QuotaUse]:
        """Return all quotas with their balances, by scope and name."""
        rows = self._link.call(
            "SELECT scope, name, limits, remains, counted FROM omega.read_quotas()"
        )
        return [
            QuotaUse.of_rows(QuotaScope(scope), name, limits, left, counted=counted)
            for scope, name, limits, left, counted in rows
        ]

    def notices(self) -> list[Notice]:
        """Return the notices of machines that are used above their capacity, ascending by id."""
        rows = self._link.call("SELECT machine, excess, ends_in_ms FROM omega.read_notices()")
        return [Notice(machine, excess, ends_in_ms) for machine, excess, ends_in_ms in rows]

    def allocations(self) -> Allocations:
        """Read all live allocations."""
        return read_allocations(self._link, "read_allocations(NULL, NULL)")[0]

    def allocations_on(self, machine: Ids) -> Allocations:
        """Read the live allocations on these machines."""
        return read_allocations(self._link, "read_allocations(NULL, %s)", Int(machine))[0]

    def allocations_since(self, mark: int) -> tuple[Allocations, int]:
        """Read the live allocations granted since a mark, and the next mark.

        Unlike that of `changes_since`, this mark also names an incarnation: the history of the
        database since its last start, promotion or restore (`incarnations.py`). All allocations
        are read if the incarnation is another one, or if the login has got machines since.
        A login that acts for some machines only, such as an agent's, gets the allocations on those.
        """
        return read_own_allocations(self._link, mark)

    def now_ms(self) -> int:
        """Return the store's clock, in milliseconds since the epoch."""
        ((now,),) = self._link.call("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        return int(now)

    def verify(self) -> Sequence[Violation]:
        """Check every invariant; return those that are broken."""
        rows = self._link.call("SELECT invariant, subject, detail FROM omega.verify()")
        return [Violation(*row) for row in rows]

    def verify_amounts(self) -> Sequence[Violation]:
        """Return the running tasks whose allocated amounts differ from their job's request.

        A commit does not compare the two; it trusts schedulers (docs/guide/roles.md).
        """
        rows = self._link.call("SELECT invariant, subject, detail FROM omega.verify_amounts()")
        return [Violation(*row) for row in rows]


def _catalogue(text: str) -> Catalogue:
    stored = decoded(text)
    return Catalogue(tuple(stored["names"]), tuple(tuple(column) for column in stored["values"]))
