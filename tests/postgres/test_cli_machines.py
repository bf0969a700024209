"""Machines that are added, drained, resized, taken down and removed, as an operator would do it."""

from collections.abc import Callable

import pytest

from omega.cli.cell.machine_names import NAMES_SHOWN
from omega.lifecycle.states import State
from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.model.resources import Kind, machine_capacity
from omega.store.postgres.store import PostgresStore
from omega.store.protocols import Store
from omega.testing.builders import a_cell, a_spec
from omega.testing.steps import (
    OVER_AT_ONCE_MS,
    a_running_job,
    add_a_cell,
    places,
    row_of,
    status_of,
)
from omega.testing.twin import row_differences
from tests.fixtures.command_line import Omega, document, summary

pytestmark = pytest.mark.usefixtures("kept_sessions")

ZONES: dict[str, list[str | None]] = {"zone": ["z1", "z1", "z2"], "rack": ["r1", None, "r1"]}


@pytest.fixture(autouse=True)
def _cell(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every command work on the test's own database."""
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)


def states(store: Store) -> list[MachineState]:
    return [MachineState(state) for state in store.snapshot().rows.state.tolist()]


def cores(store: Store, machine: int) -> int:
    return int(row_of(store, machine).capacity[0, Kind.CPU_MILLI])


def test_machines_are_added_by_name(omega: Omega, store: PostgresStore) -> None:
    size = ("--cpu", "8", "--memory", "32GiB", "--disk", "1TiB", "--gpus", 2)
    ran = omega("cell", "add", "a", "b", *size, "--attribute", "zone=z1", "--json", "-")

    added = document(ran)
    capacity = {
        "cpu_milli": 8_000,
        "memory_mib": 32_768,
        "disk_mib": 1_048_576,
        "gpu_0": 1_000,
        "gpu_1": 1_000,
    }
    assert ["a", "b"] == [row["machine"] for row in added["rows"]]
    assert [capacity, capacity] == [row["capacity"] for row in added["rows"]]
    snapshot = store.snapshot()
    assert ("a", "b") == snapshot.names
    assert [machine_capacity(8_000, 32_768, 1_048_576, 2).tolist()] * 2 == (
        snapshot.rows.capacity.tolist()
    )
    shown = summary(omega("cell", "show", "b", "--json", "-"))
    assert (capacity, capacity) == (shown["capacity"], shown["free"])
    assert ({"zone": "z1"}, "open", None) == (
        shown["attributes"],
        shown["state"],
        shown["notice"],
    )
    assert "Nothing runs on it." in omega("cell", "show", "b").out


def test_draining_machines_keep_their_tasks_and_take_none_until_they_are_opened(
    omega: Omega, store: PostgresStore
) -> None:
    add_a_cell(store, 3)
    job = a_running_job(store, a_spec(2), [1, 2])

    drained = omega("cell", "drain", "machine-1", "machine-3")
    again = omega("cell", "drain", "machine-1", "machine-3", "machine-2")
    during = omega("status").out, omega("cell", "show").out
    seen = summary(omega("status", "--json", "-"))
    opened = document(omega("cell", "open", "--json", "-", "machine-1", "machine-3"))

    assert drained.out == "2 machines are draining: machine-1, machine-3. 1 task still there.\n"
    assert again.out.startswith("3 machines are draining: machine-1, machine-2, machine-3. 2 of")
    assert "closed 3 draining" in during[0]
    assert "draining  machine-1, machine-2, machine-3" in during[1]
    assert {"draining": 3} == seen["machines_by_state"]
    assert (2, 2) == (opened["summary"]["machines"], opened["summary"]["changed"])
    assert ["draining", "draining"] == [row["before"] for row in opened["rows"]]
    assert [MachineState.OPEN, MachineState.DRAINING, MachineState.OPEN] == states(store)
    assert 2 == status_of(store, job).placed
    assert omega("cell", "open", "machine-1").out == "1 machine was open already: machine-1.\n"


def test_machines_are_meant_by_what_they_have_in_common(omega: Omega, store: PostgresStore) -> None:
    store.add_machines(a_cell(3, attributes=ZONES))
    store.set_state(integers([2]), MachineState.GONE)

    omega("cell", "drain", "--where", "zone=z1")
    after_zone = states(store)
    omega("cell", "down", "--where", "zone=z2", "--where", "rack=r1")

    assert [MachineState.DRAINING, MachineState.GONE, MachineState.OPEN] == after_zone
    assert [MachineState.DRAINING, MachineState.GONE, MachineState.DOWN] == states(store)


def test_what_ran_on_a_machine_that_is_down_waits_at_once(
    omega: Omega, store: PostgresStore
) -> None:
    add_a_cell(store, 3)
    job = a_running_job(store, a_spec(3), [1, 1, 2])
    gang = a_running_job(store, a_spec(2, minimum=2), [1, 3])

    ran = omega("cell", "down", "machine-1")
    again = summary(omega("cell", "down", "machine-1", "--json", "-"))

    assert ran.out == "1 machine is down: machine-1. 4 tasks lost, to be placed again.\n"
    assert (0, 0) == (again["changed"], again["tasks_lost"])
    assert {(job.id, 2): 2} == places(store)
    assert [State.PENDING] * 2 == [status_of(store, one).state for one in (job, gang)]
    assert "closed 1 down" in omega("status").out
    assert 0 == omega("db", "verify").code


def test_a_machine_in_use_is_removed_only_by_force_and_then_for_good(
    omega: Omega, store: PostgresStore
) -> None:
    add_a_cell(store, 3)
    job = a_running_job(store, a_spec(2), [1, 1])

    refused = omega("cell", "remove", "machine-1", "machine-2")
    before = states(store)
    empty = omega("cell", "remove", "machine-2")
    forced = summary(omega("cell", "remove", "machine-1", "--force", "--json", "-"))
    too_late = omega("cell", "open", "machine-1", "machine-3")

    assert (1, "", 1) == (refused.code, refused.out, refused.err.count("\n"))
    assert "2 tasks on 1 machine (machine-1): drain first, or say --force" in refused.err
    assert [MachineState.OPEN] * 3 == before
    assert empty.out == "1 machine is gone for good: machine-2.\n"
    assert (1, 2) == (forced["changed"], forced["tasks_lost"])
    assert (2, "omega: field MACHINE: left the cell for good: machine-1\n") == (
        too_late.code,
        too_late.err,
    )
    assert [MachineState.GONE, MachineState.GONE, MachineState.OPEN] == states(store)
    assert 0 == status_of(store, job).placed
    assert "1 machine ·" in omega("cell", "show").out
    assert "gone" == summary(omega("cell", "show", "machine-1", "--json", "-"))["state"]


def test_a_machine_grows_at_once_in_what_is_said(omega: Omega, store: PostgresStore) -> None:
    add_a_cell(store, 2, gpus=2)
    before = row_of(store, 1).capacity[0]

    grown = document(omega("cell", "resize", "machine-1", "--cpu", 16, "--gpus", 1, "--json", "-"))

    after = row_of(store, 1).capacity[0]
    assert 16_000 == after[Kind.CPU_MILLI] == grown["rows"][0]["capacity"]["cpu_milli"]
    assert before[Kind.MEMORY_MIB] == after[Kind.MEMORY_MIB]
    assert (1_000, 0) == (after[Kind.GPU_0], after[Kind.GPU_1])
    assert {"machines": 1, "on_notice": 0, "tasks_lost": 0} == grown["summary"]
    assert 4_000 == cores(store, 2)


def test_a_shrink_gives_notice_and_every_screen_says_so(omega: Omega, store: PostgresStore) -> None:
    add_a_cell(store, 2)
    job = a_running_job(store, a_spec(4), [1, 1, 1, 2])

    ran = omega("cell", "resize", "machine-1", "--cpu", "1", "--notice", "20h")

    told = "machine-1: 2 cores too much in use; in 20 h, tasks of the lowest precedence end first"
    assert ran.out == f"1 machine resized: machine-1.\n{told}.\n"
    assert 4 == status_of(store, job).placed
    assert told in " ".join(omega("cell", "show").out.split())
    assert "2 cores too much in use" in omega("cell", "show", "machine-1").out
    assert "closed 1 on notice, the next for 20 h" in omega("status").out
    assert (1, 0) == tuple(
        summary(omega("status", "--json", "-"))["notices"][which] for which in ("running", "over")
    )
    (notice,) = summary(omega("cell", "show", "--json", "-"))["notices"]
    assert ("machine-1", {"cpu_milli": 2_000}) == (notice["machine"], notice["excess"])
    assert 0 < notice["ends_in_ms"] <= 72_000_000
    assert 0 == omega("db", "verify").code


def test_without_notice_the_lowest_precedence_ends_at_once(
    omega: Omega, store: PostgresStore
) -> None:
    add_a_cell(store, 1)
    low, high = (a_running_job(store, a_spec(2, precedence=p), [1, 1]) for p in (0, 5))

    ran = omega("cell", "resize", "machine-1", "--cpu", "2", "--notice", "0")

    assert ran.out == "1 machine resized: machine-1.\n2 tasks lost, to be placed again.\n"
    assert [0, 2] == [status_of(store, job).placed for job in (low, high)]
    assert [] == store.notices()


def test_what_runs_on_a_machine_is_shown_in_the_order_in_which_it_would_end(
    omega: Omega, store: PostgresStore
) -> None:
    add_a_cell(store, 2)
    high = a_running_job(store, a_spec(name="high", precedence=7, tenant="ads"), [1])
    low = a_running_job(store, a_spec(3, name="low"), [2, 1, 1])

    shown = document(omega("cell", "show", "machine-1", "--json", "-"))
    text = omega("cell", "show", "machine-1").out

    assert [(low.id, 2, 0), (low.id, 1, 0), (high.id, 0, 7)] == [
        (row["job"], row["task"], row["precedence"]) for row in shown["rows"]
    ]
    assert ("ads", {"cpu_milli": 1_000}) == (
        shown["rows"][-1]["tenant"],
        shown["rows"][-1]["amounts"],
    )
    assert (3, 1) == (shown["summary"]["tasks"], shown["summary"]["sequence"] - 1)
    assert {"cpu_milli": 1_000, "memory_mib": 16_384, "disk_mib": 100_000} == (
        shown["summary"]["free"]
    )
    assert "1-2    1 core" in text
    assert text.index("low") < text.index("high")


BAD: dict[str, tuple[str, ...]] = {
    "there is no machine 'machine-9'; did you mean 'machine-": ("drain", "machine-1", "machine-9"),
    "name the machines, or say --where": ("drain",),
    "machines, or say --where attribute=value": ("down", "machine-1", "--where", "zone=z1"),
    "no machine has an attribute 'zoen'; did you mean 'zone'?": ("down", "--where", "zoen=z1"),
    "no machine of the cell has zone=z9": ("remove", "--where", "zone=z9"),
    "field --where: 'zone' does not read as NAME=VALUE": ("open", "--where", "zone"),
    "say at least one of --cpu": ("resize", "machine-1"),
    "field --cpu: 'lots' is not an amount": ("resize", "machine-1", "--cpu", "lots"),
    "field --memory: '4' is not an amount": ("resize", "machine-1", "--memory", "4"),
    "field --notice: 'soon' is not a dur": ("resize", "machine-1", "--cpu", "1", "--notice=soon"),
    "'400d' is more than a year": ("resize", "machine-1", "--cpu", "1", "--notice", "400d"),
    "left the cell for good: machine-3": ("resize", "machine-1", "machine-3", "--cpu", "1"),
    "machine-1": ("add", "new", "machine-1", "--cpu", "1", "--memory", "1GiB"),
    "'' is empty": ("add", "", "--cpu", "1", "--memory", "1GiB"),
    "field --attribute: ": ("add", "new", "--cpu", "1", "--memory", "1GiB", "--attribute", "=z"),
    "there is no machine 'nobody'": ("show", "nobody"),
}


@pytest.mark.parametrize(("said", "arguments"), BAD.items(), ids=BAD)
def test_what_cannot_be_done_is_one_sentence_and_changes_nothing(
    omega: Omega, store: PostgresStore, said: str, arguments: tuple[str, ...]
) -> None:
    store.add_machines(a_cell(3, attributes=ZONES))
    store.set_state(integers([3]), MachineState.GONE)
    before = store.snapshot().rows

    ran = omega("cell", *arguments)

    assert (2, "", 1) == (ran.code, ran.out, ran.err.count("\n"))
    assert said in ran.err
    assert [] == row_differences(before, store.snapshot().rows)


def test_many_machines_are_not_all_named(omega: Omega, store: PostgresStore) -> None:
    store.add_machines(a_cell(NAMES_SHOWN + 5, attributes={"zone": ["z1"] * (NAMES_SHOWN + 5)}))
    a_running_job(store, a_spec(NAMES_SHOWN + 5), range(1, NAMES_SHOWN + 6))

    drained = omega("cell", "drain", "--where", "zone=z1").out
    resized = omega("cell", "resize", "--where", "zone=z1", "--cpu", 0).out

    assert f"machine-{NAMES_SHOWN} and 5 more" in drained
    assert f"machine-{NAMES_SHOWN + 1}" not in drained
    assert NAMES_SHOWN == resized.count("too much in use")
    assert "5 more machines on notice; all of them: omega cell show" in resized


def fail_with_tasks(store: PostgresStore) -> None:
    """Leave a machine as one does who is killed between the two steps."""
    store.set_state(integers([1]), MachineState.DOWN)


def shrink_without_notice(store: PostgresStore) -> None:
    """Leave a notice that is over."""
    store.resize(1, machine_capacity(0, 0), notice_ms=OVER_AT_ONCE_MS)


@pytest.mark.parametrize(
    ("leave", "said"),
    [
        (fail_with_tasks, "Tasks are still on 1 machine down or gone"),
        (shrink_without_notice, "Tasks are left that 1 notice told to end"),
    ],
)
def test_what_nobody_ends_is_told_until_there_is_a_scheduler(
    omega: Omega, store: PostgresStore, leave: Callable[[PostgresStore], None], said: str
) -> None:
    add_a_cell(store, 1)
    a_running_job(store, a_spec(), [1])
    leave(store)

    alone = omega("db", "verify"), omega("status")
    written = summary(omega("db", "verify", "--json", "-"))
    store.report("batch", "0", pid=1, facts={})
    in_company = omega("db", "verify"), omega("status")

    for ran in alone:
        assert 0 == ran.code
        assert said in " ".join(ran.out.split())
    assert "Every invariant holds." in alone[0].out
    assert (0, 1) == (written["violations"], len(written["overdue"]))
    for ran in in_company:
        assert 0 == ran.code
        assert said not in " ".join(ran.out.split())


def test_the_gap_of_precedence_is_shown_and_set(omega: Omega, store: PostgresStore) -> None:
    assert {"before": 10, "gap": 10} == summary(omega("cell", "precedence-gap", "--json", "-"))

    ran = omega("cell", "precedence-gap", 25)

    assert "lower by 25 or more (it was 10)" in ran.out
    assert 25 == store.precedence_gap()


@pytest.mark.parametrize("gap", ["0", "-5", "x", "1.5", "2147483648"])
def test_a_gap_that_is_none_is_refused_and_nothing_is_set(
    omega: Omega, store: PostgresStore, gap: str
) -> None:
    refused = omega("cell", "precedence-gap", "--", gap)

    assert (2, "") == (refused.code, refused.out)
    assert 10 == store.precedence_gap()
