"""deploy/patroni at work, its nodes killed under load: `make test-patroni`.

Goal: the files and the README of deploy/patroni work, and what the guide says of failovers is so.
Promise: etcd, Patroni, HAProxy, Postgres and the processes of a cell are real. The nodes are three
addresses of one machine, so that none is ever cut off from the others without a word.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from statistics import median

import pytest

from omega.clock import RealClock
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_spec
from tests.deployment.patroni_load import Failover, Load, cell_at_work
from tests.deployment.patroni_nodes import (
    PASSWORD,
    Node,
    Nodes,
    addressed,
    proxied,
    running_nodes,
    until,
)
from tests.docs.documents import Block, document, marked
from tests.docs.shell import Shell

README = document("deploy/patroni/README.md")
COUNT = int(os.environ.get("PATRONI_FAILOVERS", "2"))
"""Failovers of each kind; the figures of the guide are of ten."""
SUBMISSIONS = 300
ROUNDS = 3
TTL_S = 30
PATRONICTL = "/etc/patroni/config.yml"

Fault = Callable[[Nodes, Node], None]


def postgres_dies(_nodes: Nodes, primary: Node) -> None:
    primary.kill_postgres()


def patroni_and_postgres_die(_nodes: Nodes, primary: Node) -> None:
    primary.kill("patroni")


def the_node_dies(_nodes: Nodes, primary: Node) -> None:
    primary.kill("patroni", "etcd")


def the_primary_is_changed(nodes: Nodes, _primary: Node) -> None:
    (block,) = marked(README, "switchover")
    typed(nodes, block)


def the_synchronous_standby_dies(nodes: Nodes, _primary: Node) -> None:
    for node in nodes.all:
        if node.repeats_synchronously():
            node.kill("patroni")


def both_standbys_die(nodes: Nodes, primary: Node) -> None:
    for node in nodes.all:
        if node is not primary:
            node.kill("patroni")


FAULTS: dict[Fault, bool] = {
    postgres_dies: False,  # Patroni has it recover where it was, and promotes it again
    patroni_and_postgres_die: True,
    the_node_dies: True,
    the_primary_is_changed: True,
    the_synchronous_standby_dies: False,
    both_standbys_die: False,
}
"""What goes wrong, and whether another node is the primary afterwards."""


def environment(nodes: Nodes) -> dict[str, str]:
    """Return the environment of an operator on the first node."""
    passwords = {"PGPASSFILE": str(nodes.folder / "pgpass"), "CELL_PASSWORD": PASSWORD}
    return {**nodes.all[0].environment(), **passwords, "OMEGA_DATABASE_URL": nodes.url}


def typed(nodes: Nodes, block: Block) -> dict[str, str]:
    """Type the lines of a block of the README; return what each said."""
    text = addressed(block.text).replace(PATRONICTL, str(nodes.all[0].folder / "patroni.yml"))
    there = Block(block.path, block.line, block.language, text)
    with Shell(nodes.folder, environment(nodes)) as shell:
        return shell.type_all(there)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with running_nodes() as nodes:
        nodes.passwords()
        until(nodes.are_whole, "two standbys")
        (first,) = marked(README, "first steps")
        (cell,) = marked(README, "cell")
        said = typed(nodes, first)
        assert all(node.name in next(iter(said.values())) for node in nodes.all)
        export, *others = cell.text.splitlines(keepends=True)
        assert addressed(export).strip() == f'export OMEGA_DATABASE_URL="{nodes.url}"'
        said = typed(nodes, Block(cell.path, cell.line, cell.language, "".join(others)))
        assert "The database is ready" in said["omega db init"]
        assert "good" in said["omega db doctor"]
        assert "not seen" not in said["omega db doctor"]
        with Shell(nodes.folder, environment(nodes)) as shell:
            shell.type(["omega", "cell", "load", "synthetic:200"])
        yield nodes


@pytest.fixture(params=["hosts", "proxy"])
def url(request: pytest.FixtureRequest, nodes: Nodes) -> Iterator[str]:
    """The URL that names all hosts, and the one of HAProxy."""
    if request.param == "hosts":
        yield nodes.url
    else:
        with proxied(nodes) as url:
            yield url


def report(capsys: pytest.CaptureFixture[str], line: str) -> None:
    with capsys.disabled():
        sys.stdout.write(f"\n{line}")
        sys.stdout.flush()


@pytest.fixture
def load(nodes: Nodes, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    monkeypatch.setenv("PGPASSFILE", str(nodes.folder / "pgpass"))
    with cell_at_work(url, nodes.folder, {}) as load:
        yield load


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_nothing_acknowledged_is_lost(
    nodes: Nodes, load: Load, fault: Fault, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []
    for _ in range(COUNT):
        seen.append(failed_over(nodes, load, fault))
        report(capsys, f"{fault.__name__}: {seen[-1]}")
        assert [] == load.lost()
        with Shell(nodes.folder, environment(nodes)) as shell:
            assert "Every invariant holds." in shell.type(["omega", "db", "verify"])
    numbers = [one.job for one in load.acknowledged]
    assert len(set(numbers)) == len(numbers)
    for what in ("writable", "answers", "commits"):
        times = [getattr(one, what) for one in seen]
        report(capsys, f"{what}: median {median(times):.1f} s, worst {max(times):.1f} s")
    report(capsys, f"acknowledged: {len(numbers)}; refused: {len(load.refused)}; lost: 0")


def failed_over(nodes: Nodes, load: Load, fault: Fault) -> Failover:
    """Do it, wait until all is well again, and say how long parts of it took."""
    primary = nodes.primary()
    begun = load.clock.now(), load.clock.wall()
    fault(nodes, primary)
    if fault is not the_primary_is_changed:  # which is felt from its beginning on
        begun = load.clock.now(), load.clock.wall()
    moment, calendar = begun
    until(lambda: any(node.takes_writes() for node in nodes.all), "a server that takes writes")
    writable = load.clock.now() - moment
    first = until(lambda: load.first_since(moment + writable), "a submission")
    until(lambda: load.has_succeeded(first.job), "a job to run")
    seen = Failover(writable, load.answers_apart(moment), load.commits_apart(calendar))
    for node in nodes.all:
        node.start_missing()
    until(nodes.are_whole, "two standbys")
    assert FAULTS[fault] == (nodes.primary() is not primary)
    return seen


@pytest.mark.parametrize("url", ["hosts"], indirect=True)
def test_nobody_is_promoted_who_lacks_what_was_acknowledged(nodes: Nodes, load: Load) -> None:
    primary = nodes.primary()
    both_standbys_die(nodes, primary)
    moment = load.clock.now()
    until(lambda: load.first_since(moment), "a submission with one copy")
    primary.kill("patroni")
    for node in nodes.all:
        if node is not primary:
            node.start_missing()
    others = [node for node in nodes.all if node is not primary]
    until(lambda: all(node.has_no_leader() for node in others), "the lock to run out")
    assert not any(node.takes_writes() for node in nodes.all)

    primary.start_missing()
    until(nodes.are_whole, "two standbys")

    assert nodes.primary() is primary
    assert [] == load.lost()


@pytest.mark.parametrize("url", ["hosts"], indirect=True)
def test_a_primary_that_patroni_left_behind_acknowledges_nothing(
    nodes: Nodes, load: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    primary = nodes.primary()
    primary.kill_program("patroni")
    moment = load.clock.now()
    until(lambda: sum(node.takes_writes() for node in nodes.all) > 1, "two that take writes")

    done = subprocess.run(
        [sys.executable, "-m", "omega.cli", "db", "doctor"],
        env=environment(nodes),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "split brain" in done.stdout
    # Fenced first: Patroni 3.0.2, started beside a server that waits for its standby, lets it wait
    # no more before it demotes it. Four submissions were acknowledged in that moment, and lost.
    primary.kill_postgres()
    primary.start_missing()
    until(nodes.are_whole, "two standbys")
    back = load.clock.now()
    first = until(lambda: load.first_since(back), "a submission")
    until(lambda: load.has_succeeded(first.job), "a job to run")
    report(capsys, f"Patroni killed: answers at most {load.answers_apart(moment):.1f} s apart")
    assert nodes.primary() is not primary
    assert [] == load.lost()
    with Shell(nodes.folder, environment(nodes)) as shell:
        assert "Every invariant holds." in shell.type(["omega", "db", "verify"])


@pytest.mark.parametrize("url", ["hosts"], indirect=True)
def test_a_cell_goes_on_without_etcd(
    nodes: Nodes, load: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    primary = nodes.primary()
    for node in nodes.all:
        node.kill_program("etcd")
    moment = load.clock.now()

    until(lambda: load.first_since(moment + 2 * TTL_S), "a submission, when the time is over")

    assert nodes.primary() is primary
    apart = load.answers_apart(moment)
    report(capsys, f"without etcd: answers at most {apart:.1f} s apart")
    for node in nodes.all:
        node.start_missing()
    until(nodes.are_whole, "two standbys")
    assert [] == load.lost()


def test_what_a_synchronous_standby_costs(
    nodes: Nodes, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSFILE", str(nodes.folder / "pgpass"))
    rates: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(ROUNDS):
        for synchronous in (True, False):
            set_synchronous(nodes, synchronous=synchronous)
            rates[synchronous].append(submissions_a_second(nodes.url))
    set_synchronous(nodes, synchronous=True)

    ratio = median(rates[True]) / median(rates[False])
    report(capsys, f"with a synchronous standby: {ratio:.2f} of the rate; {rates}")
    assert ratio > 0


def set_synchronous(nodes: Nodes, *, synchronous: bool) -> None:
    """Change the mode of Patroni, and wait until the primary has it."""
    setting = f"synchronous_mode={str(synchronous).lower()}"
    nodes.patronictl("edit-config", "--set", setting, "--force")
    until(
        lambda: any(node.repeats_synchronously() for node in nodes.all) == synchronous,
        f"{setting}",
    )


def submissions_a_second(url: str) -> float:
    """Submit one after the other; return how many were answered a second."""
    store = PostgresStore(url)
    clock = RealClock()
    try:
        store.submit([a_spec(duration_ms=1)])
        begun = clock.now()
        for _ in range(SUBMISSIONS):
            store.submit([a_spec(duration_ms=1)])
        return SUBMISSIONS / (clock.now() - begun)
    finally:
        store.close()
