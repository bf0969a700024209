"""Every function that a role may execute is called with hostile values; the cell stays consistent.

The functions are read from the Postgres catalogue, not from the product's list of roles. The values
are drawn from a seed. Some arguments are current tokens and start times, so that calls get further.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tests.attack.audit import leftover_locks, violations
from tests.attack.calls import (
    Claim,
    Lease,
    Transaction,
    call,
    commit,
    lease_jobs,
    make_transaction,
    submit_jobs,
)
from tests.attack.hostile_values import Literal, Rng, braced, value
from tests.attack.machine_rows import add_machines
from tests.attack.run_sizes import ExampleCount, ResultTable
from tests.attack.sessions import Database, Session
from tests.attack.wires import a_group, a_job

ROLES = ("omega_scheduler", "omega_node", "omega_submitter", "omega_reader")
FUNCTIONS = """
    SELECT r.rolname, p.proname,
           ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) AS t), p.proargnames
      FROM pg_proc p CROSS JOIN pg_roles r
     WHERE p.pronamespace = 'omega'::regnamespace AND r.rolname = ANY (%s)
       AND has_function_privilege(r.oid, p.oid, 'EXECUTE') ORDER BY 1, 2
"""
EXPECTED_ERRORS = {
    "22023",  # invalid argument
    "42501",  # no privilege
    "54000",  # over a limit
    "40001",  # to be tried again
    "55P03",
}
"""SQLSTATEs that tell the caller what was wrong with the call."""
SECRET_COLUMNS = """
    SELECT r.rolname, c.relname, a.attname FROM pg_class c
      JOIN pg_attribute a ON a.attrelid = c.oid CROSS JOIN pg_roles r
     WHERE c.relnamespace = 'omega'::regnamespace AND c.relkind IN ('r', 'v', 'm')
       AND a.attnum > 0 AND r.rolname = ANY (%s) AND a.attname LIKE '%%token%%'
       AND has_column_privilege(r.oid, c.oid, a.attnum, 'SELECT')
"""
WRITABLE_TABLES = """
    SELECT r.rolname, c.relname FROM pg_class c CROSS JOIN pg_roles r
     WHERE c.relnamespace = 'omega'::regnamespace AND r.rolname = ANY (%s || ARRAY['pg_monitor'])
       AND CASE c.relkind WHEN 'S' THEN has_sequence_privilege(r.oid, c.oid, 'USAGE, UPDATE')
                WHEN 'r' THEN has_any_column_privilege(r.oid, c.oid, 'INSERT, UPDATE, REFERENCES')
                  OR has_table_privilege(r.oid, c.oid, 'DELETE, TRUNCATE, TRIGGER') END
"""
UNSAFE_SEARCH_PATHS = """
    SELECT p.proname FROM pg_proc p
     WHERE p.pronamespace = 'omega'::regnamespace AND p.prosecdef
       AND NOT coalesce(p.proconfig @> ARRAY['search_path=omega, pg_temp'], false)
"""


@dataclass
class Function:
    """A function with the types and names of its parameters, from the catalogue."""

    name: str
    types: list[str]
    parameters: list[str]


@dataclass
class HostileCaller:
    """A login of each role, which makes hostile calls in a cell with jobs, leases and quotas."""

    database: Database
    owner: Session
    rng: Rng
    logins: dict[str, Session] = field(default_factory=dict)
    functions: dict[str, list[Function]] = field(default_factory=dict)
    leases: list[Lease] = field(default_factory=list)
    transactions: int = 1_000
    answers: "Counter[tuple[str, str]]" = field(default_factory=Counter)
    """How often each function returned each SQLSTATE."""

    def __post_init__(self) -> None:
        add_machines(self.owner, 6)
        for role in ROLES:
            self.logins[role] = self.database.session(role, role)
            self.functions[role] = []
        for role, name, types, names in self.database.query(FUNCTIONS, [list(ROLES)]):
            parameters = list(names or [])[: len(types)]
            self.functions[role].append(Function(name, types, parameters))
        node = self.logins["omega_node"].connection.info.user
        self.owner.execute("SELECT omega.assign_machines(%s, '{machine-1,machine-2}')", [node])
        call(self.owner, "set_quota", "tenant", "bob", [10**6] * 5)
        call(self.owner, "count_quota", "tenant", "bob")

    def transaction(self, *claims: Claim) -> Transaction:
        """Return a transaction with an id that no other has."""
        self.transactions += 1
        return make_transaction(self.transactions, *claims)

    def add_jobs(self) -> None:
        """Submit jobs, lease all that wait, and place some tasks."""
        submitter, scheduler = self.logins["omega_submitter"], self.logins["omega_scheduler"]
        submit_jobs(
            submitter,
            a_job(a_group(tasks=3)),
            a_job(a_group(tasks=2), minimum=2, tenant="bob", precedence=10),
            a_job(a_group(gpus=1), scheduler="service", work={"kind": "a", "steps": 9}),
        )
        call(scheduler, "rescue_jobs")
        self.leases = [
            *lease_jobs(scheduler, "batch", holder="batch"),
            *lease_jobs(scheduler, "service", holder="batch"),
        ]
        for lease in self.leases:
            machine = int(self.rng.integers(1, 7))
            tasks = range(int(self.rng.integers(1, 4)))
            claims = (Claim(lease, task, machine) for task in tasks)
            commit(scheduler, self.transaction(*claims))

    def make_call(self, role: str, function: Function) -> None:
        """Call a function with drawn arguments; an error is one of the expected ones."""
        length = int(self.rng.integers(0, 4))
        types = dict(zip(function.parameters, function.types, strict=True))
        drawn = {name: self.argument(name, types[name], length) for name in types}
        if "_jobs" in drawn and "_tokens" in drawn and self.rng.random() < 0.5:
            drawn |= self.leased_jobs(function)
        if function.name == "commit_claims" and self.rng.random() < 0.7:
            drawn = self.claims(drawn)
        if function.name == "end_tasks" and self.rng.random() < 0.7:
            drawn |= self.ends()
        if function.name == "register_machine" and self.rng.random() < 0.7:
            drawn = self.registration(drawn)
        given = ", ".join(f"{name} => %s::{sql_type}" for name, sql_type in types.items())
        answer = self.logins[role].try_execute(
            f"SELECT * FROM omega.{function.name}({given})", [drawn[name] for name in types]
        )
        self.answers[function.name, answer.sqlstate] += 1
        log = f"{function.name}({drawn}): {answer.sqlstate} {answer.message}"
        assert not answer.sqlstate or answer.sqlstate in EXPECTED_ERRORS, log
        assert not any(str(lease.token) in answer.detail for lease in self.leases), log

    def argument(self, name: str, sql_type: str, length: int) -> Literal:
        """Draw an argument; where most values are refused, draw a valid one mostly."""
        if self.rng.random() < 0.7:
            if name in {"_lease_ms", "_length_ms"}:
                return str(self.rng.integers(0, 1_000_000))
            if name in {"_facts", "_memo"}:
                return '{"a": [1]}'
        return value(self.rng, sql_type, length)

    def ends(self) -> dict[str, Literal]:
        """Return up to two running tasks: of all machines, or of the node's own ones."""
        running = self.database.query(
            "SELECT job_id, task, (extract(epoch FROM started_at) * 1000)::bigint"
            " FROM omega.allocation WHERE machine_id <= %s"
            " ORDER BY md5(job_id || %s || task) LIMIT 2",
            [2 if self.rng.random() < 0.7 else 99, str(self.rng.integers(99))],
        )
        jobs, tasks, starts = ([str(row[n]) for row in running] for n in range(3))
        known = braced(starts) if self.rng.random() < 0.5 else None
        return {"_jobs": braced(jobs), "_tasks": braced(tasks), "_started_ms": known}

    def registration(self, drawn: dict[str, Literal]) -> dict[str, Literal]:
        """Return valid arguments of a new or an own machine; one of them at most is a drawn one."""
        (generation, catalogue, width) = self.database.query(
            "SELECT generation, catalogue::text, jsonb_array_length(catalogue -> 'names')"
            " FROM omega.cell"
        )[0]
        name = f"own-{self.rng.integers(3)}"
        valid = [str(generation), name, braced(["9"] * 11), catalogue, braced(["0"] * width), name]
        arguments = dict(zip(drawn, valid, strict=True))
        replaced = self.rng.permutation(list(arguments))[: int(self.rng.integers(0, 2))]
        return arguments | {key: drawn[key] for key in replaced}

    def leased_jobs(self, function: Function) -> dict[str, Literal]:
        """Return leased jobs with their tokens, and as many entries of the other parameters."""
        count = int(self.rng.integers(0, len(self.leases) + 1))
        chosen = [self.leases[n] for n in self.rng.permutation(len(self.leases))[:count]]
        arguments_that_fit: dict[str, Any] = {
            "_jobs": [lease.job for lease in chosen],
            "_tokens": [lease.token for lease in chosen],
            "_delays_ms": [0] * count,
            "_progressed": ["true"] * count,
            "_reasons": ["no_room"] * count,
            "_details": ["full"] * count,
        }
        return {
            name: braced([str(entry) for entry in entries])
            for name, entries in arguments_that_fit.items()
            if name in function.parameters
        }

    def claims(self, drawn: dict[str, Literal]) -> dict[str, Literal]:
        """Return valid arguments of a commit; one of them at most is a drawn one."""
        rng = self.rng
        lease = self.leases[int(rng.integers(len(self.leases)))]
        running = self.database.query(
            "SELECT job_id, task, machine_id FROM omega.allocation LIMIT 20"
        )
        claims = []
        for _ in range(int(rng.integers(1, 4))):
            machine = int(rng.integers(0, 8))
            evicts: tuple[tuple[int, int], ...] = ()
            if running and rng.random() < 0.5:
                job, task, machine = running[int(rng.integers(len(running)))]
                evicts = ((job, task),)
            alternates = (int(rng.integers(0, 8)),) if rng.random() < 0.3 else ()
            task = int(rng.integers(0, 4))
            claims.append(Claim(lease, task, machine, alternates=alternates, evicts=evicts))
        valid = self.transaction(*claims).arguments
        arguments: dict[str, Any] = dict(zip(drawn, valid, strict=True))
        replaced = rng.permutation(list(arguments))[: int(rng.integers(0, 2))]
        arguments |= {
            name: drawn[name]
            for name in replaced
            # A scheduler may claim amounts that no job asks for; `verify` lists them.
            if name not in {"_amounts", "_shapes", "_other_shapes"}
        }
        return arguments


def check_a_new_job(caller: HostileCaller) -> None:
    """A new job can be submitted, placed on a new machine, and ended."""
    (machine,) = add_machines(caller.owner, 1)
    caller.owner.execute(
        "SELECT omega.assign_machines(%s, NULL)",
        [caller.logins["omega_node"].connection.info.user],
    )
    kind = f"honest {machine}"
    (job,) = submit_jobs(caller.logins["omega_submitter"], a_job(scheduler=kind, tenant=kind))
    (lease,) = lease_jobs(caller.logins["omega_scheduler"], kind)
    transaction = caller.transaction(Claim(lease, 0, machine))
    assert (0,) == commit(caller.logins["omega_scheduler"], transaction).verdicts
    assert [(1,)] == call(caller.logins["omega_node"], "end_tasks", [job], [0], None)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_cell_stays_consistent_under_hostile_calls(
    database: Database,
    owner: Session,
    example_count: ExampleCount,
    result_table: ResultTable,
    seed: int,
) -> None:
    caller = HostileCaller(database, owner, np.random.default_rng([seed, 1]))
    targets = [(role, function) for role in ROLES for function in caller.functions[role]]
    assert len(targets) > 40
    with result_table("hostile calls", of="attack") as row:
        for _ in range(example_count(2, 60)):
            caller.add_jobs()
            for n in caller.rng.permutation(len(targets) * 3):
                role, function = targets[int(n) % len(targets)]
                row.tried += 1
                caller.make_call(role, function)
                if caller.rng.random() < 0.02:
                    caller.add_jobs()
            assert [] == violations(database, check_amounts=False)
            assert [] == leftover_locks(database)
            check_a_new_job(caller)
            assert [] == violations(database, check_amounts=False)
            row.survived = row.tried
    succeeded = {name for (name, sqlstate) in caller.answers if not sqlstate}
    assert len({function.name for _, function in targets} - succeeded) <= example_count(6, 1)


def test_no_role_reads_tokens_or_writes_tables(database: Database) -> None:
    assert [] == database.query(SECRET_COLUMNS, [list(ROLES)])
    assert [] == database.query(WRITABLE_TABLES, [list(ROLES)])
    assert [] == database.query(UNSAFE_SEARCH_PATHS)
