"""Whatever a login may call, called with whatever it likes: the cell is whole afterwards.

What may be called is read from the catalogue, not from the product's list of roles. The values are
drawn from a seed; now and then real tokens and starts are among them, so that calls get further.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tests.attack.books import leftovers, wrongs
from tests.attack.calls import Claim, Lease, commit, do, lease, one, submit
from tests.attack.doses import Dose, Tally
from tests.attack.hostile_values import Chance, Literal, braced, value
from tests.attack.machine_rows import add_machines
from tests.attack.sessions import Session, Stage
from tests.attack.wires import KINDS, a_group, a_job

ROLES = ("omega_scheduler", "omega_node", "omega_submitter", "omega_reader")
CALLABLE = """
    SELECT r.rolname, p.proname, p.provolatile = 'v',
           ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) AS t), p.proargnames
      FROM pg_proc p CROSS JOIN pg_roles r
     WHERE p.pronamespace = 'omega'::regnamespace AND r.rolname = ANY (%s)
       AND has_function_privilege(r.oid, p.oid, 'EXECUTE') ORDER BY 1, 2
"""
ANSWERS = {
    "22023",  # an argument that makes no sense
    "42501",  # not the caller's to do
    "54000",  # more than there may be
    "40001",  # to be tried again
    "55P03",
}
"""SQLSTATEs that say what the caller did."""
SECRET_COLUMNS = """
    SELECT r.rolname, c.relname, a.attname FROM pg_class c
      JOIN pg_attribute a ON a.attrelid = c.oid CROSS JOIN pg_roles r
     WHERE c.relnamespace = 'omega'::regnamespace AND c.relkind IN ('r', 'v', 'm')
       AND a.attnum > 0 AND r.rolname = ANY (%s) AND a.attname LIKE '%%token%%'
       AND has_column_privilege(r.oid, c.oid, a.attnum, 'SELECT')
"""
WRITABLE = """
    SELECT r.rolname, c.relname FROM pg_class c CROSS JOIN pg_roles r
     WHERE c.relnamespace = 'omega'::regnamespace AND r.rolname = ANY (%s || ARRAY['pg_monitor'])
       AND CASE c.relkind WHEN 'S' THEN has_sequence_privilege(r.oid, c.oid, 'USAGE, UPDATE')
                WHEN 'r' THEN has_any_column_privilege(r.oid, c.oid, 'INSERT, UPDATE, REFERENCES')
                  OR has_table_privilege(r.oid, c.oid, 'DELETE, TRUNCATE, TRIGGER') END
"""
INJECTABLE = """
    SELECT p.proname FROM pg_proc p
     WHERE p.pronamespace = 'omega'::regnamespace AND p.prosecdef
       AND NOT coalesce(p.proconfig @> ARRAY['search_path=omega, pg_temp'], false)
"""


@dataclass
class Target:
    """A function, as the catalogue tells of it."""

    name: str
    types: list[str]
    names: list[str]


@dataclass
class Siege:
    """A cell with something of everything, and a login of each role that attacks it."""

    stage: Stage
    owner: Session
    chance: Chance
    logins: dict[str, Session] = field(default_factory=dict)
    targets: dict[str, list[Target]] = field(default_factory=dict)
    leases: list[Lease] = field(default_factory=list)
    commits: int = 1_000
    answers: "Counter[tuple[str, str]]" = field(default_factory=Counter)

    def __post_init__(self) -> None:
        add_machines(self.owner, 6)
        for role in ROLES:
            self.logins[role] = self.stage.session(role, role)
            self.targets[role] = []
        for role, name, _writes, types, names in self.stage.see(CALLABLE, [list(ROLES)]):
            self.targets[role].append(Target(name, types, list(names or [])[: len(types)]))
        node = self.logins["omega_node"].connection.info.user
        self.owner.do("SELECT omega.assign_machines(%s, '{machine-1,machine-2}')", [node])
        do(self.owner, "set_quota", "tenant", "bob", [10**6] * 5)
        do(self.owner, "count_quota", "tenant", "bob")

    def bring_work(self) -> None:
        """Submit jobs, place what waits, and keep some leases: an honest hour."""
        by, scheduler = self.logins["omega_submitter"], self.logins["omega_scheduler"]
        submit(
            by,
            a_job(a_group(tasks=3)),
            a_job(a_group(tasks=2), minimum=2, tenant="bob", precedence=1),
            a_job(a_group(gpus=1), scheduler="service", training={"model": "a", "steps": 9}),
        )
        do(scheduler, "rescue_jobs")
        self.leases = [
            *lease(scheduler, "batch", holder="batch"),
            *lease(scheduler, "service", holder="batch"),
        ]
        for it in self.leases:
            self.commits += 1
            machine = int(self.chance.integers(1, 7))
            tasks = range(int(self.chance.integers(1, 4)))
            commit(scheduler, one(self.commits, *(Claim(it, n, machine) for n in tasks)))

    def call(self, role: str, target: Target) -> None:
        """Call a function of a role's; whoever is refused is told why."""
        length = int(self.chance.integers(0, 4))
        drawn = {
            name: self.argument(name, of, length)
            for name, of in zip(target.names, target.types, strict=True)
        }
        if "_jobs" in drawn and "_tokens" in drawn and self.chance.random() < 0.5:
            drawn |= self.own_jobs(target)
        if target.name == "commit_claims" and self.chance.random() < 0.7:
            drawn = self.claims(drawn)
        if target.name == "end_tasks" and self.chance.random() < 0.7:
            drawn |= self.ends()
        given = ", ".join(
            f"{name} => %s::{of}" for name, of in zip(target.names, target.types, strict=True)
        )
        answer = self.logins[role].ask(
            f"SELECT * FROM omega.{target.name}({given})", [drawn[name] for name in target.names]
        )
        self.answers[target.name, answer.sqlstate] += 1
        seen = f"{target.name}({drawn}): {answer.sqlstate} {answer.said}"
        assert not answer.sqlstate or answer.sqlstate in ANSWERS, seen
        assert not any(str(it.token) in answer.detail for it in self.leases), seen

    def argument(self, name: str, of: str, length: int) -> Literal:
        """Draw an argument; what would be refused for one reason alone is mostly drawn right."""
        if self.chance.random() < 0.7:
            if name in {"_lease_ms", "_length_ms"}:
                return str(self.chance.integers(0, 1_000_000))
            if name in {"_facts", "_memo"}:
                return '{"a": [1]}'
        return value(self.chance, of, length)

    def ends(self) -> dict[str, Literal]:
        """Some tasks that run, and when they began: anywhere, or on the node's own machines."""
        live = self.stage.see(
            "SELECT job_id, task, (extract(epoch FROM started_at) * 1000)::bigint"
            " FROM omega.allocation WHERE machine_id <= %s"
            " ORDER BY md5(job_id || %s || task) LIMIT 2",
            [2 if self.chance.random() < 0.7 else 99, str(self.chance.integers(99))],
        )
        jobs, tasks, starts = ([str(row[n]) for row in live] for n in range(3))
        known = braced(starts) if self.chance.random() < 0.5 else None
        return {"_jobs": braced(jobs), "_tasks": braced(tasks), "_started_ms": known}

    def own_jobs(self, target: Target) -> dict[str, Literal]:
        """Jobs and their own tokens, and other entries as many."""
        count = int(self.chance.integers(0, len(self.leases) + 1))
        chosen = [self.leases[n] for n in self.chance.permutation(len(self.leases))[:count]]
        fitting: dict[str, Any] = {
            "_jobs": [it.job for it in chosen],
            "_tokens": [it.token for it in chosen],
            "_delays_ms": [0] * count,
            "_progressed": ["true"] * count,
            "_reasons": ["no_room"] * count,
            "_details": ["full"] * count,
        }
        return {
            name: braced([str(entry) for entry in entries])
            for name, entries in fitting.items()
            if name in target.names
        }

    def claims(self, drawn: dict[str, Literal]) -> dict[str, Literal]:
        """Claims that could be made, but for an array or two that were drawn."""
        chance, self.commits = self.chance, self.commits + 1
        of = self.leases[int(chance.integers(len(self.leases)))]
        live = self.stage.see("SELECT job_id, task, machine_id FROM omega.allocation LIMIT 20")
        claims = []
        for _ in range(int(chance.integers(1, 4))):
            machine = int(chance.integers(0, 8))
            evicts: tuple[tuple[int, int], ...] = ()
            if live and chance.random() < 0.5:
                job, task, machine = live[int(chance.integers(len(live)))]
                evicts = ((job, task),)
            others = (int(chance.integers(0, 8)),) if chance.random() < 0.3 else ()
            task = int(chance.integers(0, 4))
            claims.append(Claim(of, task, machine, evicts=evicts, others=others))
        right = one(self.commits, *claims).arguments
        kept: dict[str, Any] = dict(zip(drawn, right, strict=True))
        bent = chance.permutation(list(kept))[: int(chance.integers(0, 2))]
        kept |= {
            name: drawn[name]
            for name in bent
            # Amounts that no job asks for are a scheduler's to claim, and listed elsewhere.
            if name not in {"_amounts", "_shapes", "_other_shapes"}
        }
        return kept


def an_honest_job_is_placed(siege: Siege) -> None:
    """Whatever went before, work comes, is placed and ends."""
    (machine,) = add_machines(siege.owner, 1)
    siege.owner.do(
        "SELECT omega.assign_machines(%s, NULL)",
        [siege.logins["omega_node"].connection.info.user],
    )
    kind = f"honest {machine}"
    (job,) = submit(siege.logins["omega_submitter"], a_job(scheduler=kind, tenant=kind))
    (mine,) = lease(siege.logins["omega_scheduler"], kind)
    siege.commits += 1
    claims = one(siege.commits, Claim(mine, 0, machine))
    assert (0,) == commit(siege.logins["omega_scheduler"], claims).verdicts
    assert [(1,)] == do(siege.logins["omega_node"], "end_tasks", [job], [0], None)


@pytest.mark.parametrize("seed", range(2))
def test_hostile_calls_leave_the_cell_whole(
    stage: Stage, owner: Session, dose: Dose, tally: Tally, seed: int
) -> None:
    siege = Siege(stage, owner, np.random.default_rng([seed, 1]))
    flat = [(role, target) for role in ROLES for target in siege.targets[role]]
    assert len(flat) > 40
    with tally("hostile calls", of="attack") as row:
        for _ in range(dose(2, 60)):
            siege.bring_work()
            for n in siege.chance.permutation(len(flat) * 3):
                role, target = flat[int(n) % len(flat)]
                row.tried += 1
                siege.call(role, target)
                if siege.chance.random() < 0.02:
                    siege.bring_work()
            assert [] == wrongs(stage, honest=False)
            assert [] == leftovers(stage)
            an_honest_job_is_placed(siege)
            assert [] == wrongs(stage, honest=False)
            row.survived = row.tried
    reached = {name for (name, sqlstate) in siege.answers if not sqlstate}
    assert len({target.name for _, target in flat} - reached) <= dose(6, 1)


def test_nobody_reads_tokens_or_writes_tables(stage: Stage) -> None:
    assert [] == stage.see(SECRET_COLUMNS, [list(ROLES)])
    assert [] == stage.see(WRITABLE, [list(ROLES)])
    assert [] == stage.see(INJECTABLE)
    assert KINDS
