"""Arguments of the functions for agents that no agent of ours sends: refused in a sentence."""

from collections.abc import Iterator

import pytest

from omega.model.resources import KINDS
from tests.fixtures.sessions import Sessions
from tests.postgres.store_under_load import StoreUnderLoad, loaded_store

ZEROS = "0, " * (KINDS - 2) + "0"
HOLDER = "'00000000-0000-0000-0000-000000000001'"
MANY = "ARRAY(SELECT generate_series(1, 1001))"


def exits(
    *,
    tasks: str = "'{1}', '{0}', '{0}'",
    cause: str = "'{exited}'",
    code: str = "'{0}'",
    signal: str = "'{0}'",
    restarts: str = "'{0}'",
    detail: str = "'{\"\"}'",
) -> str:
    return f"report_exits({tasks}, {cause}, {code}, {signal}, {restarts}, {detail})"


def outputs(
    *,
    tasks: str = "'{1}', '{0}', '{0}'",
    stream: str = "'{stdout}'",
    total: str = "'{9}'",
    tail: str = "ARRAY['x'::bytea]",
) -> str:
    return f"report_outputs({tasks}, {stream}, {total}, {tail})"


def registered(
    *,
    name: str = "'a'",
    amounts: str = f"'{{1, {ZEROS}}}'",
    catalogue: str = """{"names": ["zone"], "values": [["z1", "z2"]]}""",
    codes: str = "'{1}'",
    address: str = "NULL",
) -> str:
    return f"register_machine(1, {name}, {amounts}, '{catalogue}', {codes}, {address})"


@pytest.fixture
def cell(database_url: str, sessions: Sessions) -> Iterator[StoreUnderLoad]:
    with loaded_store(database_url, sessions) as store:
        yield store


REFUSED = [
    (exits(tasks="'{1}', '{0}', '{}'"), "differ in length"),
    (exits(tasks="'{1}', '{0}', NULL"), "bad array"),
    (exits(tasks=f"{MANY}, {MANY}, {MANY}"), "a list of at most 1000"),
    (exits(cause="'{}'"), "bad exits: tasks, causes, codes"),
    (exits(detail="'{NULL}'"), "holds a null"),
    (exits(cause="'{bored}'", code="'{-1}'"), "bad exits: a cause is none of exited,"),
    (exits(code="'{256}'"), "bad exits: a code is 0 to 255"),
    (exits(code="'{-2}'", cause="'{lost}'"), "bad exits: a code is 0 to 255"),
    (exits(code="'{-1}'"), "bad exits: a code is 0 to 255"),
    (exits(cause="'{lost}'"), "bad exits: a code is 0 to 255"),
    (exits(signal="'{65}'"), "bad exits: signals are 0 to 64"),
    (exits(signal="'{-1}'"), "bad exits: signals are 0 to 64"),
    (exits(restarts="'{-1}'"), "restarts not negative"),
    (exits(detail="ARRAY[repeat('x', 1001)]"), "a detail is longer than 1000"),
    (exits(detail="ARRAY[E'a\x1b[2Jb']"), "cannot be printed"),
    (outputs(tasks="'{1}', '{0}', '{}'"), "differ in length"),
    (outputs(tasks=f"{MANY}, {MANY}, {MANY}"), "a list of at most 1000"),
    (outputs(stream="'{}'"), "tasks, streams, bytes and tails differ"),
    (outputs(stream="'{stdin}'"), "a stream is none of stdout,stderr"),
    (outputs(total="'{0}'"), "a tail is longer than all that was written"),
    (outputs(total="'{-1}'", tail="ARRAY[''::bytea]"), "a tail is longer than all"),
    (
        outputs(total="'{999999}'", tail="ARRAY[convert_to(repeat('x', 65537), 'UTF8')]"),
        "or than 65536 bytes",
    ),
    (outputs(tail="ARRAY[NULL::bytea]"), "holds a null"),
    ("are_running('{1}', '{0}', '{}')", "differ in length"),
    (f"are_running({MANY}, {MANY}, {MANY})", "a list of at most 1000"),
    ("read_programs(NULL)", "bad array"),
    (f"read_programs({MANY})", "a list of at most 1000"),
    ("read_addresses(NULL)", "bad array"),
    (f"read_addresses({MANY})", "a list of at most 1000"),
    ("machine_revision(NULL)", "there is no machine null"),
    ("machine_revision(1000)", "there is no machine 1000"),
    *(
        (f"hold_machine({given})", says)
        for given, says in (
            (f"NULL, {HOLDER}, 1", "there is no machine null"),
            (f"1000, {HOLDER}, 1", "there is no machine 1000"),
            ("1, NULL, 1", "bad holder: null"),
            (f"1, {HOLDER}, NULL", "bad length of a lease: null ms"),
            (f"1, {HOLDER}, -1", "bad length of a lease: -1 ms"),
            (f"1, {HOLDER}, 86400001", "of at most 86400000"),
        )
    ),
    *(
        (f"{name}({given})", says)
        for name in ("leave_machine", "free_machine")
        for given, says in (
            (f"NULL, {HOLDER}", "there is no machine null"),
            (f"1000, {HOLDER}", "there is no machine 1000"),
            ("1, NULL", "bad holder: null"),
        )
    ),
    ("lose_own_tasks(NULL)", "there is no machine null"),
    ("lose_own_tasks(1000)", "there is no machine 1000"),
    (registered(name="NULL"), "holds a null"),
    (registered(name="''"), "a name is empty"),
    (registered(name="repeat('x', 401)"), "longer than any"),
    (registered(name="E'a\x1b[2Jb'"), "cannot be printed"),
    (registered(amounts=f"'{{-1, {ZEROS}}}'"), "none of them negative"),
    (registered(amounts="'{1}'"), f"each has {KINDS} amounts"),
    (registered(codes="'{3}'"), "each of a value"),
    (registered(catalogue="""{"names": ["zone"], "values": [["z2", "z1"]]}"""), "does not go on"),
    (registered(catalogue="[]"), "no names"),
    *((registered(address=it), "bad address") for it in ("''", "'a,b'", "E'a\\n'", "'\u00e4'")),
]
FUNCTIONS = sorted({call.partition("(")[0] for call, _ in REFUSED})


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_mistake_of_the_caller_is_told(cell: StoreUnderLoad, function: str) -> None:
    for call, says in REFUSED:
        if call.startswith(f"{function}("):
            with cell.rolled_back():
                assert says in (cell.attempt(f"SELECT omega.{call}", ()) or "taken"), call


def test_what_is_in_form_is_taken(cell: StoreUnderLoad) -> None:
    """Or the test above would say nothing."""
    for call in (
        exits(),
        exits(cause="'{lost}'", code="'{-1}'", signal="'{64}'", detail="ARRAY[repeat('x', 1000)]"),
        outputs(),
        outputs(total="'{0}'", tail="ARRAY[''::bytea]"),
        "are_running('{1}', '{0}', '{0}')",
        "read_programs('{1}')",
        "machine_revision(1)",
        f"hold_machine(1, {HOLDER}, 86400000)",
        f"leave_machine(1, {HOLDER})",
        f"free_machine(1, {HOLDER})",
        "lose_own_tasks(4)",
        "expire_machines()",
        registered(),
        registered(address="'fe80::1'"),
        "read_addresses('{1}')",
    ):
        with cell.rolled_back():
            assert cell.attempt(f"SELECT omega.{call}", ()) is None, call
            assert [] == cell.verify()
