"""`omega audit`, run on a real server as an operator or a reader would run it."""

import json
from pathlib import Path

import psycopg
import pytest

from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_spec
from omega.testing.progress_contract import a_job_in_steps
from omega.testing.steps import a_running_job, add_a_cell, grant, submit_and_lease
from tests.fixtures.command_line import Omega, Ran
from tests.fixtures.logins import Login

pytestmark = pytest.mark.usefixtures("kept_sessions")

LONG_AGO = "UPDATE omega.allocation SET started_at = started_at - interval '2 h'"


@pytest.fixture(autouse=True)
def _cell(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have every command work on the test's own database and folder."""
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def at_work(store: PostgresStore, database_url: str) -> PostgresStore:
    """Return a cell of four cores: for two hours ann has held three of them, and bob half of one.

    Two tasks of bob's job have no place; a job of ann's has made no step.
    """
    add_a_cell(store, 1, cpu_milli=4_000)
    a_running_job(store, a_job_in_steps(1), [1], cpu_milli=1)
    a_running_job(store, a_spec(3, tenant="ann"), [1, 1, 1])
    (job,) = submit_and_lease(store, a_spec(3, name="half", tenant="bob"))
    grant(store, job, [0], [1], cpu_milli=500)
    with psycopg.connect(database_url) as connection:
        connection.execute(LONG_AGO)
    return store


def policy(text: str) -> str:
    """Write a policy; return its name."""
    Path("policy.yaml").write_text(text)
    return "policy.yaml"


def lines(ran: Ran) -> list[str]:
    return [" ".join(line.split()) for line in ran.out.splitlines() if line.strip()]


@pytest.mark.usefixtures("at_work")
def test_without_a_policy_only_shares_are_shown(omega: Omega) -> None:
    ran = omega("audit", "--over", "1h")

    assert (0, "") == (ran.code, ran.err)
    first, *told = lines(ran)
    assert first.startswith("60 min, from ")
    assert [
        "tenant cpu memory disk allowed",
        "ann 75% 0% 0% -",
        "bob 12% 0% 0% -",
        "default 0.0% 0% 0% -",
        "scheduler cpu memory disk allowed",
        "batch 88% 0% 0% -",
        "No policy was given: --policy FILE says what is allowed.",
    ] == told


@pytest.mark.usefixtures("at_work")
def test_what_is_above_comes_first_and_the_code_says_so(omega: Omega) -> None:
    text = """
        over: 1h
        every_tenant: {at_most: 70%}
        tenants: {bob: {at_most: 10%, of: cpu}}
        schedulers: {batch: {at_most: 90%}}
        idle: {at_most: 90m}
    """

    ran = omega("audit", "--policy", policy(text))

    assert (1, "") == (ran.code, ran.err)
    assert [
        "tenant cpu memory disk allowed",
        "ann 75% 0% 0% 70% of any above",
        "bob 12% 0% 0% 10% of cpu above",
        "default 0.0% 0% 0% 70% of any",
        "scheduler cpu memory disk allowed",
        "batch 88% 0% 0% 90% of any",
        "idle job name tenant tasks holds for because",
        "1 job default 1/1 cpu 0.001 2 h it has made no step",
        "3 half bob 1/3 cpu 0.5 2 h it waits for tasks without a place",
        "Above the policy: 2 tenants, 2 idle jobs.",
    ] == lines(ran)[1:]


@pytest.mark.usefixtures("at_work")
def test_what_a_policy_allows_is_told_and_code_0(omega: Omega) -> None:
    ran = omega("audit", "--policy", policy("every_tenant: {at_most: 75%}"), "--over", "1h")

    assert (0, "Nothing is above the policy.") == (ran.code, lines(ran)[-1])


@pytest.mark.usefixtures("at_work")
def test_a_longer_time_dilutes_what_was_held(omega: Omega) -> None:
    name = policy("over: 1h\nevery_tenant: {at_most: 70%}")

    ran = omega("audit", "--policy", name)
    longer = omega("audit", "--policy", name, "--over", "4h")

    assert [1, 0] == [ran.code, longer.code]
    assert "ann 38% 0% 0% 70% of any" in lines(longer)


@pytest.mark.usefixtures("at_work")
def test_the_document_has_every_row_and_the_window(omega: Omega) -> None:
    ran = omega("audit", "--policy", policy("idle: {at_most: 90m}"), "--over", "1h", "--json", "-")

    assert 1 == ran.code
    read = json.loads(ran.out)
    assert {"policy": "policy.yaml", "over_ms": 3_600_000, "demo": False} == read["parameters"]
    assert ["tenant"] * 3 + ["scheduler"] + ["idle"] * 2 == [row["check"] for row in read["rows"]]
    assert 0.75 == read["rows"][0]["share"]
    assert 3_600_000 == read["summary"]["until_ms"] - read["summary"]["since_ms"]
    assert 2 == read["summary"]["above"]


def test_an_empty_cell_is_audited(omega: Omega) -> None:
    ran = omega("audit", "--policy", policy("every_tenant: {at_most: 0%}"))

    assert (0, "") == (ran.code, ran.err)
    assert ["Nothing was held.", "Nothing is above the policy."] == lines(ran)[1:]


def test_a_reader_may_audit(omega: Omega, login: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", login("reader", "omega_reader"))

    assert 0 == omega("audit", "--policy", policy("idle: {at_most: 1h}")).code


@pytest.mark.parametrize("role", ["omega_scheduler", "omega_node", "omega_submitter"])
def test_others_may_not(
    omega: Omega, login: Login, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", login(role.removeprefix("omega_"), role))

    ran = omega("audit")

    assert 1 == ran.code
    assert "may not do this" in ran.err


@pytest.mark.parametrize("over", ["0", "-1", "nan", "1e300", "9" * 300, "inf", "an hour"])
def test_a_window_that_is_none_is_refused(omega: Omega, over: str) -> None:
    ran = omega("audit", f"--over={over}")

    assert (2, "") == (ran.code, ran.out)
    assert ran.err.startswith("omega: field --over: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tenants: {ann: {at_most: 200%}}", "policy.yaml, line 1, field tenants.ann.at_most: "),
        ("idle: {at_most: 1h}\nover: -3", "policy.yaml, line 2, field over: "),
        ("\tidle", "policy.yaml, line 1"),
    ],
)
def test_a_policy_that_is_none_is_refused_with_its_place(
    omega: Omega, text: str, said: str
) -> None:
    ran = omega("audit", "--policy", policy(text))

    assert (2, "") == (ran.code, ran.out)
    assert said in " ".join(ran.err.split())


def test_a_policy_that_is_not_there_is_refused(omega: Omega) -> None:
    ran = omega("audit", "--policy", "nowhere.yaml")

    assert 2 == ran.code
    assert "nowhere.yaml: cannot be read" in ran.err
