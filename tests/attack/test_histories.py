"""Random histories: several sessions make one call at a time, in an order drawn from a seed.

Some sessions leave transactions open, and others wait for their locks. Acknowledged answers make up
an expected state, which is compared with the database at the end. The invariants are checked all
along.
"""

import re
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.attack.audit import leftover_locks, violations
from tests.attack.calls import Outcome, call
from tests.attack.clients import CAPACITY, CLIENTS, Call, Workload
from tests.attack.expected_state import Effect, ExpectedState, differences
from tests.attack.machine_rows import add_machines, running_tasks, truncate_tables
from tests.attack.run_sizes import ExampleCount, ResultTable
from tests.attack.sessions import Database, Session, wait_until

CONFLICTS = {"40P01", "40001", "55P03"}
"""A transaction of several statements may deadlock with others or be told to try again."""
ROW_LOCKS = {"transactionid", "tuple", "spectoken"}
EXPECTED_ERRORS = {("count_quota", "22023"), ("commit_claims", "22023")}
"""A quota is not counted in the transaction that set it. Copies of a transaction may differ while
their leases are uncommitted; one copy is then refused because its id is taken."""
STEPS_BETWEEN_AUDITS = 8


@dataclass
class Client:
    """A session, its running call, and the effects of its open transaction."""

    session: Session
    call: Call | None = None
    unacknowledged: list[Effect] = field(default_factory=list)
    transactions: set[int] = field(default_factory=set)
    """Backends that had a transaction open at some moment of the running call."""

    @property
    def backend(self) -> int:
        """The process ID of the session's backend."""
        return self.session.connection.info.backend_pid


@dataclass
class History:
    """Clients of one database, and what they have done so far."""

    database: Database
    workload: Workload
    clients: dict[str, Client]
    expected: ExpectedState = field(default_factory=ExpectedState)
    lines: list[str] = field(default_factory=list)

    @property
    def log(self) -> str:
        """All steps so far, one a line."""
        return "\n".join(self.lines)

    def collect_answers(self) -> None:
        """Read the answers of the calls that have returned."""
        for name, client in self.clients.items():
            if client.call is None or not client.session.is_done:
                continue
            returned, answer = client.call, client.session.answer
            client.call = None
            self.lines.append(f"{name}: {returned.function} returned {answer.sqlstate or 'rows'}")
            if answer.sqlstate:
                allowed = (returned.function, answer.sqlstate) in EXPECTED_ERRORS
                assert allowed or answer.sqlstate in CONFLICTS, f"{answer}\n{self.log}"
                # Single statements lock rows in one order, so they never deadlock by themselves.
                # The transaction that took part may be over by the time this answer is read.
                backends = {int(pid) for pid in re.findall(r"[Pp]rocess (\d+)", answer.detail)}
                deadlocked = answer.sqlstate == "40P01"
                assert not deadlocked or backends & client.transactions, f"{answer}\n{self.log}"
                continue
            effect = returned.read(answer.rows)
            if effect is not None:
                client.unacknowledged.append(effect)
            if not client.session.in_transaction:
                self.acknowledge(client)

    def acknowledge(self, client: Client) -> None:
        """Apply the effects of a committed transaction to the expected state."""
        for effect in client.unacknowledged:
            effect(self.expected)
        client.unacknowledged.clear()

    def end_transaction(self, name: str, statement: str) -> None:
        """Commit or roll back the transaction of a client."""
        client = self.clients[name]
        self.lines.append(f"{name}: {statement}")
        client.session.execute(statement)
        if statement == "COMMIT":
            self.acknowledge(client)
        client.unacknowledged.clear()

    def step(self) -> None:
        """Let one idle client act; every session that waits then waits for a row."""
        self.collect_answers()
        idle = [name for name, client in self.clients.items() if client.call is None]
        if not idle:
            sessions = [client.session for client in self.clients.values()]
            wait_until(
                lambda: any(session.is_done for session in sessions), "a deadlock to be broken"
            )
            return
        name = idle[self.workload.below(len(idle))]
        client, choice = self.clients[name], self.workload.below(10)
        if client.session.has_failed:
            self.end_transaction(name, "ROLLBACK")
        elif client.session.in_transaction and choice < 5:
            self.end_transaction(name, "ROLLBACK" if choice == 0 else "COMMIT")
        else:
            if not client.session.in_transaction and choice < 4:
                client.session.execute("BEGIN")
                self.lines.append(f"{name}: BEGIN")
                for other in self.clients.values():
                    other.transactions.add(client.backend)
            self.start_call(name)
        self.database.settle()
        lock_types = {it for types in self.database.waiting().values() for it in types.split(", ")}
        assert ROW_LOCKS.issuperset(lock_types), self.log

    def start_call(self, name: str) -> None:
        """Start the next call of a client."""
        draws = CLIENTS[name][1]
        client = self.clients[name]
        client.transactions = self.open_transactions()
        client.call = draws[self.workload.below(len(draws))](self.workload)
        self.lines.append(f"{name}: {client.call.function}{client.call.arguments}")
        client.session.start(client.call.statement, client.call.arguments)

    def open_transactions(self) -> set[int]:
        """Return the backends of clients in a transaction, those included that wait in one."""
        clients = self.clients.values()
        idle = {it.backend for it in clients if it.call is None and it.session.in_transaction}
        return idle | {it.backend for it in clients if it.call and it.backend in it.transactions}

    def close(self) -> None:
        """End all transactions, one after the other, and read the last answers."""
        for _ in range(1_000):
            self.database.settle()
            self.collect_answers()
            in_transaction = [
                name
                for name, client in self.clients.items()
                if client.call is None and client.session.in_transaction
            ]
            if not in_transaction and all(it.call is None for it in self.clients.values()):
                return
            for name in in_transaction[:1]:
                failed = self.clients[name].session.has_failed
                self.end_transaction(name, "ROLLBACK" if failed else "COMMIT")


def new_history(database: Database, seed: int) -> History:
    """Empty the database, add machines and open the sessions of all clients."""
    owner = database.sessions.get("owner") or database.owner()
    truncate_tables(owner)
    machines = add_machines(owner, 3, CAPACITY)
    workload = Workload(database, np.random.default_rng([seed, 7]), machines)
    history = History(database, workload, {"owner": Client(owner)})
    for name, (roles, _) in CLIENTS.items():
        if roles:
            session = database.sessions.get(name) or database.session(name, *roles)
            history.clients[name] = Client(session)
    node = history.clients["node"].session.connection.info.user
    owner.execute("SELECT omega.assign_machines(%s, NULL)", [node])
    return history


def check_invariants(history: History) -> None:
    """No invariant is violated, and no session holds locks outside a transaction."""
    assert [] == violations(history.database), history.log
    assert [] == leftover_locks(history.database), history.log


def check_replays(history: History) -> None:
    """A granted transaction that is sent again returns the first outcome or grants nothing again.

    Once its record has been pruned, a copy is a transaction like any other: claims that were
    refused the first time may be granted; those that were granted are not, for their tasks are
    placed.
    """
    was_pruned = "prune_history returned rows" in history.log
    before = running_tasks(history.database)
    session = history.clients["scheduler 1"].session
    granted_anew: set[tuple[int, int, int]] = set()
    for transaction, outcome in history.expected.answers.values():
        if outcome.grants:
            again = Outcome.of(call(session, "commit_claims", *transaction.arguments))
            refused_since = was_pruned and not again.grants
            assert not again.replayed or again.matches(outcome) or refused_since, history.log
            assert again.replayed or not set(again.grants) & set(outcome.grants), history.log
            if was_pruned and not again.replayed:
                granted_anew |= {
                    (transaction.claims[n].lease.job, transaction.claims[n].task, again.landed[n])
                    for n in again.grants
                }
    added = {task for task in running_tasks(history.database) if task not in before}
    assert added <= granted_anew, history.log


def run(history: History, steps: int) -> None:
    """Run a history to its end, and compare the database with the expected state."""
    for n in range(steps):
        history.step()
        if n % STEPS_BETWEEN_AUDITS == 0:
            check_invariants(history)
    history.close()

    check_invariants(history)
    assert [] == differences(history.expected, history.database), history.log
    check_replays(history)
    check_invariants(history)
    for job in history.expected.jobs:
        call(history.clients["submitter"].session, "cancel_job", job)
    check_invariants(history)
    assert [] == running_tasks(history.database), history.log


@pytest.mark.parametrize("part", range(2))
def test_the_database_agrees_with_the_acknowledged_answers(
    database: Database, example_count: ExampleCount, result_table: ResultTable, part: int
) -> None:
    with result_table("histories", of="attack") as row:
        for seed in range(example_count(1, 25)):
            row.tried += 1
            run(new_history(database, 1_000 * part + seed), example_count(60, 150))
            row.survived += 1
