"""`omega usage`, run on a real server as an operator or a reader would run it."""

import csv
import io
from pathlib import Path

import psycopg
import pytest

from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_spec
from omega.testing.steps import a_running_job, add_a_cell
from tests.fixtures.command_line import Omega, document
from tests.fixtures.logins import Login

pytestmark = pytest.mark.usefixtures("kept_sessions")

LONG_AGO = "UPDATE omega.allocation SET started_at = started_at - interval '2 h'"
WAITED = """
    UPDATE omega.job SET submitted_at = first_leased_at - interval '90 s'
     WHERE first_leased_at IS NOT NULL
"""


@pytest.fixture(autouse=True)
def _cell(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have every command work on the test's own database and folder."""
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def at_work(store: PostgresStore, database_url: str) -> PostgresStore:
    """For two hours ann has held three cores and a GPU, and bob half a core; a job of bob waits."""
    add_a_cell(store, 1, gpus=1)
    a_running_job(store, a_spec(3, tenant="ann"), [1, 1, 1])
    a_running_job(store, a_spec(tenant="ann", name="train"), [1], cpu_milli=0, gpu_0=1_000)
    a_running_job(store, a_spec(tenant="bob"), [1], cpu_milli=500)
    store.submit([a_spec(tenant="bob", name="new")])
    with psycopg.connect(database_url) as connection:
        connection.execute(LONG_AGO)
        connection.execute(WAITED)
    return store


@pytest.mark.usefixtures("at_work")
def test_tenants_are_listed_with_a_sum(omega: Omega) -> None:
    ran = omega("usage", "--since", "1h")

    assert (0, "") == (ran.code, ran.err)
    first, *told = [" ".join(line.split()) for line in ran.out.splitlines() if line.strip()]
    assert first.startswith("60 min, from ")
    assert [
        "tenant core-h GPU-h runs evicted lost jobs wait longest waiting",
        "ann 3.0 1.0 4 0 0 2 90 s 90 s 0",
        "bob 0.500 0.000 1 0 0 1 90 s 90 s 1",
        "all 3.5 1.0 5 0 0 3 90 s 90 s 1",
        "wait, longest: for the first attempt, of the jobs that had it in the time",
        "waiting: jobs that still wait for it · evicted: by commits, moves included",
    ] == told


@pytest.mark.usefixtures("at_work")
def test_the_document_has_what_the_table_has(omega: Omega) -> None:
    told = document(omega("usage", "--by", "job", "--since", "1h", "--json", "-"))

    assert {"by": "job", "since_ms": 3_600_000, "demo": False} == told["parameters"]
    rows = {row["name"]: row for row in told["rows"]}
    assert (1.0, "ann", "batch") == (
        rows["train"]["gpu_hours"],
        rows["train"]["tenant"],
        rows["train"]["scheduler"],
    )
    assert 4 == len(told["rows"])
    total = told["summary"]["total"]
    assert (3.5, 1.0, 90.0, 1) == (
        total["core_hours"],
        total["gpu_hours"],
        total["wait_mean_s"],
        total["unattempted"],
    )
    assert 3_500 * 3_600 * 10**6 == total["held_us"]["cpu_milli"]


@pytest.mark.usefixtures("at_work")
def test_csv_goes_to_a_file_or_to_standard_output(omega: Omega) -> None:
    here = omega("usage", "--by", "scheduler", "--since", "1h", "--csv", "-")
    there = omega("usage", "--by", "scheduler", "--since", "1h", "--csv", "usage.csv")

    (row,) = csv.DictReader(io.StringIO(here.out))
    assert ("batch", "3.500000", "5") == (row["scheduler"], row["core_hours"], row["runs"])
    assert here.out == Path("usage.csv").read_text()
    assert "core-h" in there.out


def test_a_reader_may_see_it_and_others_may_not(
    at_work: PostgresStore, login: Login, omega: Omega, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", login("reader", "omega_reader"))
    assert "ann" in omega("usage").out

    monkeypatch.setenv("OMEGA_DATABASE_URL", login("submitter", "omega_submitter"))
    refused = omega("usage")
    assert (1, "") == (refused.code, refused.out)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--since", "soon"), "field --since: 'soon' is not a duration"),
        (("--since", "0s"), "field --since:"),
        (("--since", "99999d"), "field --since:"),
        (("--csv", "nowhere/usage.csv"), "field --csv: there is no folder"),
        (("--csv", "-", "--json", "-"), "field --csv: standard output is for one of"),
    ],
)
def test_bad_input_is_one_sentence(omega: Omega, words: tuple[str, ...], said: str) -> None:
    ran = omega("usage", *words)

    assert (2, "") == (ran.code, ran.out)
    assert said in ran.err
    assert 1 == ran.err.count("\n")
