"""Elastic jobs that no program of ours submits, and calls for them: refused in a sentence."""

from collections.abc import Iterator

import pytest

from tests.fixtures.sessions import Sessions
from tests.postgres.store_under_load import StoreUnderLoad, loaded_store
from tests.postgres.submissions import WORK, a_phase, elastic, group, job

REFUSED = [
    *(
        (job(workers=workers), "its workers are no number of at most")
        for workers in [
            "7",
            "[]",
            "{}",
            '{"at_most": 0, "phases": []}',
            '{"at_most": 100001, "phases": []}',
            '{"at_most": 1.5, "phases": []}',
            '{"at_most": 1, "phases": [], "wanted": 1}',
        ]
    ),
    (elastic(at_most="1", groups="[" + group(tasks="2") + "]"), "fewer workers than it has tasks"),
    (elastic(groups="[" + ", ".join([group()] * 2) + "]"), "several task groups"),
    (elastic(groups="[" + group(spread_over='"zone"') + "]"), "depends on where others run"),
    (elastic(groups="[" + group(different_machines="true") + "]"), "depends on where others run"),
    (elastic(work=WORK), "has workers and is in steps"),
    (elastic(phases="7"), "no list of phases"),
    (elastic(phases="null"), "no list of phases"),
    (elastic(a_phase(), a_phase(name='"b"'), a_phase(name='"c"')), "more than 2 phases"),
    *(
        (elastic(a_phase(**{field: value})), "one that is not in the wire form")
        for field, value in [
            ("name", "7"),
            ("name", '""'),
            ("activities", "0"),
            ("activities", "1000001"),
            ("activities", "1e9"),
            ("duration_ms", "0"),
            ("duration_ms", "9000000000000000000"),
            ("after", "7"),
            ("junk", "0"),
        ]
    ),
    (elastic("7"), "one that is not in the wire form"),
    (elastic(a_phase(), groups="[" + group(duration_ms="5") + "]"), "ends with the last activity"),
    (elastic(a_phase(), a_phase()), "two of its phases have one name"),
    (elastic(a_phase(after='"b"')), "after one that is not there"),
    (elastic(a_phase(after='"a"')), "wait for each other"),
    (
        elastic(a_phase(after='"b"'), a_phase(name='"b"', after='"a"')),
        "its phases wait for each other",
    ),
    (elastic(a_phase(), a_phase(name='"b"', after='"b"')), "wait for each other"),
    ("add_helpers('batch', 'me', 1, 1, 0, NULL)", "bad length of a lease: null ms"),
    ("add_helpers('batch', 'me', 1, 1, 0, 86400001)", "bad length of a lease: 86400001 ms"),
    ("add_helpers('batch', '', 1, 1, 0, 1)", "bad helpers"),
    ("add_helpers('batch', 'me', 1, 0, 0, 1)", "bad helpers"),
    ("add_helpers('batch', 'me', 1, 100001, 0, 1)", "bad helpers"),
    ("add_helpers('batch', 'me', 1, NULL, 0, 1)", "bad helpers"),
    ("add_helpers('batch', 'me', 1, 1, NULL, 1)", "bad helpers"),
    ("end_helpers('batch', '{1}', '{}')", "differ in length"),
    ("end_helpers('batch', NULL, '{}')", "bad array"),
    ("elastic_jobs('batch', -1)", "bad number: -1"),
    ("report_phases('{1}', '{0}', '{1}', '{}')", "differ in length"),
    ("report_phases('{1}', '{-1}', '{1}', '{1}')", "bad progress"),
    ("report_phases('{1}', '{0}', '{-1}', '{1}')", "bad progress"),
    ("report_phases('{1}', '{0}', '{1}', '{-1}')", "bad progress"),
    ("report_phases('{NULL}', '{0}', '{1}', '{1}')", "holds a null"),
]


@pytest.fixture
def cell(database_url: str, sessions: Sessions) -> Iterator[StoreUnderLoad]:
    with loaded_store(database_url, sessions) as store:
        yield store


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
        elastic(),
        elastic(at_most="100000"),
        elastic(a_phase()),
        elastic(a_phase(activities="1000000"), a_phase(name='"b"', after='"a"')),
        elastic(a_phase(after='"b"'), a_phase(name='"b"')),
        elastic(groups="[" + group(duration_ms="5", tasks="9") + "]"),
        job(workers="null"),
        "add_helpers('batch', 'me', 1, 1, -1, 1)",
        "end_helpers('batch', '{1}', '{0}')",
        "elastic_jobs('batch', 1)",
        "report_phases('{1}', '{7}', '{1}', '{1}')",
        "read_phases('{1, NULL}')",
    ):
        with cell.rolled_back():
            assert cell.attempt(f"SELECT omega.{call}", ()) is None, call
            assert [] == cell.verify()
