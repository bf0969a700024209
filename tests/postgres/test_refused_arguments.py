"""Arguments that no program of ours sends: refused in a sentence, and nothing is changed."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import psycopg
import pytest

from omega.errors import BadInput
from omega.model.resources import KINDS, amounts
from omega.store.postgres.connection import Link
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_claim, a_spec, a_transaction, claims_of_job
from omega.testing.steps import claim, submit_and_lease
from tests.fixtures.at_work import wait_until
from tests.fixtures.sessions import Sessions
from tests.postgres.hostile_values import HUGE_AND_PLAIN
from tests.postgres.store_under_load import StoreUnderLoad, loaded_store
from tests.postgres.submissions import WORK, constraint, group, job, pipeline, stage

ZEROS = "0, " * (KINDS - 2) + "0"


@pytest.fixture
def cell(database_url: str, sessions: Sessions) -> Iterator[StoreUnderLoad]:
    with loaded_store(database_url, sessions) as store:
        yield store


def machines(
    *,
    names: str = "'{a}'",
    amounts: str = f"'{{1, {ZEROS}}}'",
    catalogue: str = """{"names": ["zone"], "values": [["z1", "z2"]]}""",
    codes: str = "'{1}'",
) -> str:
    return f"add_machines(1, {names}, {amounts}, '{catalogue}', {codes})"


def nested(levels: int) -> str:
    """Return an object with so many levels, itself among them."""
    return '{"x": ' + "[" * (levels - 1) + "]" * (levels - 1) + "}"


VALUES = ", ".join(f'"{number:05}-xxxx"' for number in range(700))
NAMED = '"another"'
GREEDY = group(constraints=f'[{{"attribute": "zone", "operator": "in", "values": [{VALUES}]}}]')
"""A task group of about eight thousand bytes."""
LEASE = "'{2}', '{00000000-0000-0000-0000-000000000002}'"

REFUSED = [
    ("set_quota('tenant', repeat('x', 201), '{1,1,1,1,1}')", "by name"),
    ("set_quota('tenant', E'a\\x1b[2Jb', '{1,1,1,1,1}')", "by name"),
    ("read_occupants(NULL)", "bad machines"),
    ("read_yielding(NULL)", "bad precedence"),
    ("read_occupants(ARRAY(SELECT generate_series(1, 1001)))", "bad machines"),
    *((f"set_precedence_gap({gap})", "bad gap") for gap in ("0", "-1", "NULL")),
    *(
        (f"{call}({length})", "bad length of time")
        for call in ("read_holdings", "read_idle_jobs")
        for length in ("NULL", "-1", "9223372036854775807")
    ),
    ("read_holdings(0)", "bad length of time: 0 ms"),
    ("read_usage(0, 'job')", "bad length of time: 0 ms"),
    ("read_usage(-1, 'job')", "bad length of time"),
    ("read_usage(1, 'login')", "by tenant, scheduler or job"),
    ("read_usage(1, NULL)", "by tenant, scheduler or job"),
    ("set_state('{1}', 4::smallint)", "bad state: 4"),
    ("set_state('{1}', NULL)", "bad state: null"),
    (f"resize_machine(1, '{{-1, {ZEROS}}}', 0)", "bad capacity"),
    (f"resize_machine(1, '{{{ZEROS}}}', 0)", "bad capacity"),
    (f"resize_machine(1, '[0:{KINDS - 1}]={{1, {ZEROS}}}', 0)", "does not begin at 1"),
    (f"resize_machine(1, '{{1, {ZEROS}}}', -1)", "bad length of time: -1 ms"),
    (machines(amounts=f"'{{-1, {ZEROS}}}'"), "none of them negative"),
    (machines(amounts="'{1}'"), f"each has {KINDS} amounts"),
    (machines(names="'{\"\"}'"), "a name is empty"),
    (machines(names="ARRAY[repeat('x', 401)]"), "longer than any"),
    (machines(names="ARRAY[E'a\\x1b[2Jb']"), "cannot be printed"),
    (machines(names="'{NULL}'"), "holds a null"),
    (machines(codes="'{NULL}'"), "holds a null"),
    (machines(codes="'{3}'"), "each of a value"),
    (machines(codes="'{-1}'"), "each of a value"),
    (machines(catalogue="""{"names": ["zone"], "values": [["z2", "z1"]]}"""), "does not go on"),
    (machines(catalogue="""{"names": ["zone"], "values": [["z1"]]}"""), "does not go on"),
    (machines(catalogue="""{"names": ["rack"], "values": [["z1", "z2"]]}"""), "does not go on"),
    (
        machines(catalogue="""{"names": ["zone"], "values": [["z1", "z2", "z1"]]}"""),
        "does not go on",
    ),
    (machines(catalogue="""{"names": [], "values": []}""", codes="'{}'"), "does not go on"),
    (machines(catalogue="""{"names": ["zone"], "values": [[1, 2]]}"""), "no list of values"),
    (machines(catalogue="""{"names": [7], "values": [["z1", "z2"]]}"""), "no names"),
    (machines(catalogue="[]"), "no names"),
    ("lease_jobs('batch', 'me', NULL, 1)", "bad number: null"),
    ("lease_jobs('batch', 'me', -1, 1)", "bad number: -1"),
    ("lease_jobs('batch', 'me', 1, NULL)", "bad length of a lease: null ms"),
    ("lease_jobs('batch', 'me', 1, 86400001)", "bad length of a lease: 86400001 ms"),
    ("lease_jobs('batch', NULL, 1, 1)", "the name of its holder is empty"),
    ("lease_jobs('batch', E'me\x1b[2J', 1, 1)", "the name of its holder is empty"),
    (f"renew_leases({LEASE}, 86400001)", "bad length of a lease: 86400001 ms"),
    ("recall_jobs('batch', 1, '{1}', 86400001)", "bad length of a lease: 86400001 ms"),
    (f"renew_leases({LEASE[:5]}, '{{}}', 1)", "differ in length"),
    (f"hand_back_jobs({LEASE}, '{{}}', '{{true}}')", "differ in length"),
    (f"hand_back_jobs({LEASE}, '{{1}}', '{{NULL}}')", "holds a null"),
    (f"hand_back_jobs({LEASE}, '{{86400001}}', '{{true}}')", "bad length of a lease: 86400001 ms"),
    (f"park_jobs({LEASE}, '{{no_room}}', ARRAY[repeat('x', 1001)])", "bad detail"),
    (f"park_jobs({LEASE}, '{{no_room}}', ARRAY[E'why\u202e'])", "bad detail"),
    ("report_process('batch', '0', NULL, '{}')", "bad report"),
    ("report_process('batch', '0', 1, NULL)", "bad report"),
    ("report_process('batch', E'0\n1', 1, '{}')", "bad report"),
    ("report_process('batch', '0', 1, jsonb_build_object('x', repeat('x', 16384)))", "bad report"),
    (f"report_process('batch', '0', 1, '{nested(17)}')", "bad report"),
    ("report_process('batch', '0', 1, '{\"x\": 1e400}')", "bad report"),
    ("report_process('batch', '0', 1, '{\"x\": [0e-5000]}')", "bad report"),
    ("read_changes(0, 0, '{0}')", "bad parts"),
    ("prune_history('transaction', 0, 4294967295, 1)", "bad blocks"),
    ("begin_round(NULL, 'me', 1)", "bad round"),
    ("begin_round('batch', '', 1)", "bad round"),
    ("begin_round('batch', 'me', NULL)", "bad length of time: null ms"),
    ("begin_round('batch', 'me', -1)", "bad length of time: -1 ms"),
    ("note_round('batch', 1, NULL)", "bad memo"),
    ("note_round('batch', 1, '[]')", "bad memo"),
    ("note_round('batch', 1, jsonb_build_object('x', repeat('x', 4194304)))", "bad memo"),
    (f"note_round('batch', 1, '{nested(17)}')", "bad memo"),
    ("note_round('batch', 1, '{\"x\": -1e400}')", "bad memo"),
    (f"park_jobs({LEASE}, '{{bored}}', '{{why}}')", "bad reason: it is none of never_fits"),
    (f"park_jobs({LEASE}, '{{NULL}}', '{{why}}')", "holds a null"),
    ("report_progress('{1}', '{1}', '{}')", "differ in length"),
    ("report_progress('{1}', '{}', '{1}')", "differ in length"),
    ("report_progress('{1}', '{-1}', '{0}')", "bad progress"),
    ("report_progress('{1}', '{0}', '{-1}')", "bad progress"),
    ("report_progress('{1}', '{0}', '{1000000000000001}')", "bad progress"),
    ("report_progress('{NULL}', '{1}', '{1}')", "holds a null"),
    ("report_progress('{1}', NULL, '{1}')", "bad array"),
    ("submit_pipelines('7')", "they are no list"),
    ("submit_pipelines(NULL)", "they are no list"),
    ("submit_pipelines('[7]')", "bad pipeline 1: it is no object"),
    (pipeline(junk="1"), "or has a field that no pipeline has"),
    (pipeline(name='"a\\nb"'), "characters that can be printed"),
    (pipeline(tenant="null"), "name and tenant are texts"),
    *((pipeline(within_ms=ms), "within which it is to end") for ms in ("0", "null", "1.5", "1e40")),
    *(
        (pipeline(tokens=tokens), "its tokens are no rate")
        for tokens in (
            "7",
            "[]",
            "{}",
            '{"rate": 0, "interval_ms": 1}',
            '{"rate": 1, "interval_ms": 0}',
            '{"rate": 1, "interval_ms": 1, "junk": 0}',
            '{"rate": 1000001, "interval_ms": 1}',
        )
    ),
    (pipeline(stages="7"), "it has no list of stages"),
    (pipeline(stages="[]"), "1 to 64 stages"),
    (pipeline(stages="[" + ", ".join([stage()] * 65) + "]"), "1 to 64 stages"),
    (pipeline(stages="[" + ", ".join([stage()] * 2) + "]"), "two of its stages have one name"),
    *(
        (pipeline(stages=f"[{stage(**{field: value})}]"), "a stage is not in the wire form")
        for field, value in [
            ("name", "7"),
            ("name", '""'),
            ("after", "7"),
            ("after", "[0]"),
            ("after", "[-1]"),
            ("units", "0"),
            ("units", "1.5"),
            ("units", "1000000000001"),
            ("junk", "1"),
        ]
    ),
    *(
        (pipeline(stages=f"[{stage()}, {stage(name=NAMED, after=after)}]"), "comes before one")
        for after in ("[1]", "[0, 0]", "[0.0]", '["s"]', "[null]")
    ),
    (pipeline(stages=f"[{stage(job='7')}]"), "stage 1: it is no object"),
    (pipeline(tenant='"u"'), "stage 1: its tenant is not that of the pipeline"),
    ("submit_jobs('7')", "they are no list"),
    ("submit_jobs(NULL)", "they are no list"),
    ("submit_jobs('[7]')", "bad job 1: it is no object, or has a field that"),
    (job(scheduler='"' + "x" * 201 + '"'), "texts of 1 to 200 characters"),
    (job(name='"a\\nb"'), "characters that can be printed"),
    (job(name='"a\\u009bb"'), "characters that can be printed"),
    (job(name='"a\\u202eb"'), "characters that can be printed"),
    (job(name="7"), "bad job 1: name, scheduler and tenant are texts"),
    (job(junk=nested(3_000)), "or has a field that no job has"),
    (job(junk="7" * 6_000), "or has a field that no job has"),
    (job(groups="[" + group(junk="0") + "]"), "a task group is not in the wire form"),
    (job(groups="[" + group(tasks="1e130000") + "]"), "a task group is not in the wire form"),
    (job(groups="[" + group(tasks="0e-16000") + "]"), "a task group is not in the wire form"),
    (job(work='{"kind": "a", "steps": 1, "junk": 0}'), "its work is no kind"),
    (job(groups="[" + ", ".join([GREEDY] * 17) + "]"), "it is longer than 131072 bytes"),
    (job(tenant="null"), "bad job 1: name, scheduler and tenant are texts"),
    (job(precedence="2147483648"), "its precedence"),
    (job(precedence="0.5"), "its precedence"),
    *((job(preemptible=value), "preemptible") for value in ("null", "1", '"yes"', "[]")),
    (job(minimum="2"), "its minimum is no number from 0 to that of its tasks"),
    (job(minimum="-1"), "its minimum"),
    (job(minimum="null"), "its minimum"),
    (job(groups="7"), "it has no list of task groups"),
    (job(groups="[]"), "1 to 64 task groups"),
    (job(groups="[" + ", ".join([group()] * 65) + "]"), "1 to 64 task groups"),
    (job(groups="[7]"), "a task group is not in the wire form"),
    (job(groups="[" + ", ".join([group(tasks="60000")] * 2) + "]"), "120000 tasks, more than"),
    *(
        (job(groups=f"[{group(**{field: value})}]"), "a task group is not in the wire form")
        for field, value in [
            ("tasks", "0"),
            ("tasks", '"1"'),
            ("tasks", "1.0"),
            ("tasks", "1e40"),
            ("cpu_milli", "2147483648"),
            ("gpus", "9"),
            ("gpu_slices", "0"),
            ("duration_ms", "-1"),
            ("duration_ms", "9000000000000000000"),
            ("duration_ms", '"5"'),
            ("constraints", "{}"),
            ("constraints", "[7]"),
            ("spread_over", "7"),
            ("spread_over", "{}"),
            ("different_machines", '"yes"'),
        ]
    ),
    (job(groups="[" + group(gpus="2", gpu_slices="500") + "]"), "not in the wire form"),
    *(
        (job(work=work), "its work is no kind, number of steps from 1 to")
        for work in [
            *(
                f'{{"kind": "a", "steps": 1, "weight": {it}}}'
                for it in ("0", "1001", "null", "1.5")
            ),
            "7",
            "[]",
            "{}",
            '{"model": "a"}',
            '{"steps": 1}',
            '{"model": 7, "steps": 1}',
            '{"model": "", "steps": 1}',
            '{"model": "a", "steps": 0}',
            '{"model": "a", "steps": 1.5}',
            '{"model": "a", "steps": 1000000000000001}',
        ]
    ),
    (job(work=WORK, groups="[" + group(duration_ms="5") + "]"), "have durations"),
    (constraint(attribute="7"), "not in the wire form"),
    (constraint(operator='"near"'), "not in the wire form"),
    (constraint(values="[]"), "not in the wire form"),
    (constraint(values='["z1", ""]'), "not in the wire form"),
    (constraint(values='["z1\\u001b[2J"]'), "not in the wire form"),
    (constraint(values='["' + "x" * 201 + '"]'), "not in the wire form"),
    (constraint(values="[" + ", ".join(['"z1"'] * 1_001) + "]"), "not in the wire form"),
    (constraint(junk="7"), "not in the wire form"),
    (constraint(values="[7]"), "not in the wire form"),
    (constraint(values='"z1"'), "not in the wire form"),
    (constraint(operator='"exists"'), "not in the wire form"),
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
        machines(),
        job(),
        pipeline(),
        pipeline(tokens='{"rate": 1, "interval_ms": 1}'),
        pipeline(stages=f"[{stage()}, {stage(name=NAMED, after='[0]')}]"),
        job(work="null"),
        job(work=WORK),
        constraint(),
        constraint(operator='"missing"', values="[]"),
        f"resize_machine(1, '{{1, {ZEROS}}}', 0)",
        "report_progress('{1}', '{1}', '{1}')",
        f"park_jobs({LEASE}, '{{no_room}}', '{{why}}')",
        f"hand_back_jobs({LEASE}, '{{1}}', '{{true}}')",
        "begin_round('batch', 'me', 1)",
        "note_round('batch', 1, '{}')",
        "recall_jobs('batch', 1, '{1}', 1)",
        f"report_process('batch', '0', 1, '{nested(16)}')",
        "report_process('batch', '0', 1, '{\"x\": [1.7e308, 5e-324, -1e18]}')",
        job(groups="[" + ", ".join([GREEDY] * 11) + "]"),
        constraint(values="[" + ", ".join(['"z1"'] * 1_000) + "]"),
        f"park_jobs({LEASE}, '{{no_room}}', ARRAY[repeat('x', 1000)])",
        f"park_jobs({LEASE}, '{{no_room}}', '{{\"\"}}')",
    ):
        with cell.rolled_back():
            assert cell.attempt(f"SELECT omega.{call}", ()) is None, call
            assert [] == cell.verify()


@pytest.mark.parametrize("too_wide", [2**31, 2**32 + 1])
def test_a_number_that_is_too_wide_is_not_cut_off(store: PostgresStore, too_wide: int) -> None:
    (machine,) = store.add_machines(a_cell(1)).tolist()
    (leased,) = submit_and_lease(store, a_spec())
    mistakes: list[Callable[[], object]] = [
        lambda: claim(store, leased, [0], [machine], cpu_milli=too_wide),
        lambda: claim(store, leased, [0], [too_wide]),  # cut off, the second is machine 1
        lambda: store.resize(machine, amounts(cpu_milli=too_wide), notice_ms=0),
    ]

    for mistake in mistakes:
        with pytest.raises(BadInput, match="a number does not fit 32 bits"):
            mistake()

    assert 0 == len(store.allocations())


def test_what_is_more_than_postgres_can_take_in_is_refused(database_url: str) -> None:
    insert = "INSERT INTO omega.machine_profile (id, name, codes) VALUES (1, %s, '{}')"
    link = Link(database_url, application_name="omega tests", statement_timeout_ms=30_000)

    with closing(link), pytest.raises(BadInput, match="index row"):
        link.call(insert, (HUGE_AND_PLAIN,))


def test_half_a_character_is_refused(store: PostgresStore) -> None:
    for text in ("\udcff", "a\x00b"):
        with pytest.raises(BadInput):
            store.jobs(scheduler=text)

    assert [] == store.jobs(scheduler="\u00ff")


def test_another_transaction_of_the_same_id_is_refused(store: PostgresStore) -> None:
    (machine,) = store.add_machines(a_cell(1)).tolist()
    first, second = submit_and_lease(store, a_spec(), a_spec())
    one = a_transaction(claims_of_job(first, a_claim(0, machine=machine)))
    other = a_transaction(claims_of_job(second, a_claim(0, machine=machine)))
    store.commit(one)

    with pytest.raises(BadInput, match="another one has this id"):
        store.commit(replace(other, id=one.id))

    assert [first.id] == store.allocations().job.tolist()


def test_another_transaction_of_the_same_id_that_is_under_way_is_refused(
    store: PostgresStore, database_url: str
) -> None:
    """They name no job in common, so neither waits for the other before it has judged."""
    (machine,) = store.add_machines(a_cell(1)).tolist()
    first, second = submit_and_lease(store, a_spec(), a_spec())
    one = a_transaction(claims_of_job(first, a_claim(0, machine=machine)))
    record = (
        "INSERT INTO omega.transaction (id, scheduler, replica, by_sequence, jobs, ends, tasks,"
        " machines, verdicts) VALUES (%s, 'batch', '0', false, %s, '{1}', '{0}', '{1}', '{0}')"
    )
    with (
        psycopg.connect(database_url) as twin,
        psycopg.connect(database_url, autocommit=True) as watcher,
        closing(PostgresStore(database_url, application_name="omega victim")) as victim,
        ThreadPoolExecutor(1) as pool,
    ):
        twin.execute(record, (one.id, [second.id]))
        call = pool.submit(victim.commit, one)
        waiting = (
            "SELECT FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'omega victim' AND wait_event_type = 'Lock'"
        )
        wait_until(lambda: watcher.execute(waiting).fetchall(), "the call to wait for its twin")
        twin.commit()

        with pytest.raises(BadInput, match="another one has this id"):
            call.result()

    assert 0 == len(store.allocations())
    assert not store.snapshot().rows.used.any()
