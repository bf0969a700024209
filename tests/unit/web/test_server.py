"""The page as its server answers: documents, streams, refusals, and its end."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, cast

import pytest

from omega.clock import RealClock
from omega.errors import BadInput, StoreUnavailable
from omega.lifecycle.states import ParkReason
from omega.limits import LIMITS
from omega.model.exits import TaskOutput
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.store.leases import Parking
from omega.store.memory.store import MemoryStore
from omega.store.protocols import Store
from omega.testing.builders import a_cell, a_spec
from omega.testing.steps import a_running_job, submit_and_lease
from omega.web.guard import HEADERS, is_loopback
from omega.web.server import checked_token
from tests.fixtures.pages import HOST, TOKEN, Locked, Served, events, served

MARKUP = "<script>alert(1)</script>"
WRONG = {"a login with a wrong token", "a request with a wrong token"}
TAIL = b"a<b>\xff"
PAGES = ["/", "/queue", "/jobs", "/job/1", "/machine/1", "/schedulers", "/shares"]
DATA = ["/data/state", "/data/map", "/data/names/0", "/data/jobs", "/data/job/1", "/metrics"]


def a_store() -> Store:
    """Return a small cell, with markup wherever users name things."""
    store = MemoryStore(RealClock())
    machines = a_cell(4, gpus=1, attributes={MARKUP: [MARKUP] * 4})
    store.add_machines(machines)
    a_running_job(store, a_spec(2, name=MARKUP, tenant=MARKUP), [1, 2], cpu_milli=500)
    (parked,) = submit_and_lease(store, a_spec(name="big", tenant="ann"))
    store.park([Parking(parked.id, parked.token, ParkReason.NEVER_FITS, MARKUP)])
    store.set_quota(Quota(QuotaScope.TENANT, MARKUP, {Budget.CPU_MILLI: 4_000}))
    store.report("batch", MARKUP, pid=1, facts={})
    return cast(Store, Locked(store))


@pytest.fixture
def store() -> Store:
    return a_store()


@pytest.fixture(scope="module")
def page() -> Iterator[Served]:
    """A page for tests that change nothing."""
    store = a_store()
    store.report_outputs([TaskOutput(1, 0, store.allocations().started_ms[0], "stdout", 5, TAIL)])
    with served(store) as page:
        with page.stream() as stream:
            next(events(stream))  # so that the watcher has looked
        yield page


@pytest.fixture(scope="module")
def closed() -> Iterator[Served]:
    """A page that wants a token."""
    with served(a_store(), token=TOKEN) as page:
        yield page


def read(page: Served, path: str) -> Any:  # noqa: ANN401 - JSON
    answer = page.ask(path)
    assert (200, "application/json") == (answer.status, answer.headers["content-type"])
    return json.loads(answer.body)


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_the_same_shell_and_holds_nothing_of_the_cell(
    page: Served, path: str
) -> None:
    answer = page.ask(path)

    assert 200 == answer.status
    assert answer.body == page.ask("/").body
    assert b"alert(1)" not in answer.body
    assert b"http" not in answer.body, "it works without any other server"


def test_the_shell_names_files_that_are_there(page: Served) -> None:
    for name in ("app.js", "omega.css", "icon.svg"):
        first = page.ask(f"/static/{name}")
        again = page.ask(f"/static/{name}", If_None_Match=first.headers["etag"])

        assert 200 == first.status
        assert (304, b"") == (again.status, again.body)
    for name in ("nothing.js", "../server.py", "%2e%2e%2fserver.py", "__init__.py"):
        assert 404 == page.ask(f"/static/{name}").status


def test_the_state_is_that_of_the_cell(page: Served) -> None:
    state = read(page, "/data/state")

    assert 4 == state["cell"]["machines"]
    assert 1_000 == state["cell"]["used"]["cpu_milli"]
    assert [{"reason": "never_fits", "jobs": 1}] == [
        {name: it[name] for name in ("reason", "jobs")} for it in state["queue"]["parked"]
    ]
    assert [MARKUP] == [quota["name"] for quota in state["quotas"]]
    assert [MARKUP] == [it["replica"] for it in state["schedulers"]["rows"]]
    assert {"names": [["batch", "0"]], "granted": [2], "cells": []} == state["conflicts"]["total"][
        "replicas"
    ]


def test_a_job_a_machine_and_an_output_are_what_the_reports_say(page: Served) -> None:
    job, machine = read(page, "/data/job/1"), read(page, "/data/machine/2")

    assert (MARKUP, 2, None) == (job["name"], job["placed"], job["why"])
    assert [(0, "machine-1", 1), (1, "machine-2", 2)] == [
        (it["task"], it["machine"], it["id"]) for it in job["places"]
    ]
    assert ("machine-2", {MARKUP: MARKUP}) == (machine["machine"], machine["attributes"])
    assert [1] == [it["job"] for it in machine["places"]]
    assert [{"task": 0, "stream": "stdout", "bytes": 5}] == job["outputs"]
    assert {"bytes": 5, "text": "a<b>\ufffd"} == read(page, "/data/output/1/0/stdout")
    assert "never_fits" == read(page, "/data/job/2")["why"]["reason"]
    assert MARKUP == read(page, "/data/job/2")["why"]["evidence"]


def test_a_job_and_a_machine_tell_their_stories(page: Served) -> None:
    job, machine = read(page, "/data/story/job/1"), read(page, "/data/story/machine/2")

    assert ["submitted", "leased", "placed"] == [it["what"] for it in job["events"]]
    assert "task 0 on machine-1; task 1 on machine-2" == job["events"][-1]["told"]
    assert ["task 1 of job 1"] == [it["told"] for it in machine["events"]]
    assert (0, True) == (job["left_out"], job["searched"]["are_all"])
    for path in ("job/9", f"job/{2**63}", "machine/9", f"machine/{2**31}"):
        assert 404 == page.ask(f"/data/story/{path}").status


@pytest.mark.parametrize(
    ("query", "jobs"),
    [
        ("", [2, 1]),
        ("state=parked", [2]),
        ("state=running&kind=batch", [1]),
        ("tenant=ann", [2]),
        ("name=big", [2]),
        ("name=big&tenant=bob", []),
        ("kind=nobody", []),
        ("state=nonsense", [2, 1]),
    ],
)
def test_jobs_are_listed_by_what_they_are(page: Served, query: str, jobs: list[int]) -> None:
    assert jobs == [it["id"] for it in read(page, f"/data/jobs?{query}")["rows"]]


def test_a_name_leads_to_a_job_or_a_machine(page: Served) -> None:
    assert {"job": 2, "machine": None} == read(page, "/data/find?text=big")
    assert {"job": None, "machine": 3} == read(page, "/data/find?text=machine-3")
    assert {"job": None, "machine": None} == read(page, f"/data/find?text={'9' * 3_000}")


@pytest.mark.parametrize(
    "path",
    [
        "/data/job/99",
        f"/data/job/{'9' * 60}",
        f"/data/machine/{'9' * 60}",
        f"/data/output/{'9' * 60}/0/stdout",
        f"/data/output/1/{'9' * 60}/stdout",
        "/data/output/1/0/secrets",
        "/data/nothing",
        "/nothing",
    ],
)
def test_what_is_not_there_is_not_found(page: Served, path: str) -> None:
    assert 404 == page.ask(path).status


class Away(Locked):
    """A store that does not answer questions about jobs, and says where it is."""

    def job(self, job: int) -> None:
        """Fail."""
        del job
        raise StoreUnavailable("boss@db.internal does not answer")


def test_what_the_database_says_of_itself_reaches_no_browser() -> None:
    with served(cast(Store, Away(MemoryStore(RealClock())))) as page:
        for path in ("/data/job/1", "/data/story/job/1"):
            answer = page.ask(path)

            assert 503 == answer.status
            assert b"The database does not answer, or refuses this: see the log." in answer.body
            assert b"db.internal" not in answer.body


def test_a_change_arrives_in_the_stream(store: Store) -> None:
    with served(store) as page, page.stream() as stream:
        told = events(stream)
        assert "text/event-stream" == stream.getheader("content-type")
        next(told)
        (job,) = submit_and_lease(store, a_spec(name="late"))
        store.park([Parking(job.id, job.token, ParkReason.NO_ROOM, "")])
        parked = (
            json.loads(data)["queue"]["parked"]
            for name, data in told
            if name == "state" and "queue" in json.loads(data)
        )

        assert {"never_fits", "no_room"} == next(
            {it["reason"] for it in its} for its in parked if len(its) == 2
        )


def test_every_answer_has_strict_headers_and_data_is_never_stored(page: Served) -> None:
    for path in [*PAGES, *DATA, "/nothing", "/static/app.js", "/healthz"]:
        headers = page.ask(path).headers
        for name, value in HEADERS.items():
            assert value == headers[name.lower()]
        assert ("no-store" == headers["cache-control"]) == (
            path not in PAGES and not path.startswith("/static")
        )
        assert "server" not in headers
    assert "default-src 'none'" in HEADERS["Content-Security-Policy"]
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(page: Served, method: str) -> None:
    answer = page.ask("/data/state", method=method)

    assert (405, "GET, HEAD") == (answer.status, answer.headers["allow"])


def test_long_addresses_are_refused(page: Served) -> None:
    long = "x" * LIMITS.web_path_max

    assert 414 == page.ask(f"/{long}").status
    assert 414 == page.ask(f"/data/jobs?name={'x' * LIMITS.web_query_max}").status
    assert page.ask(f"/{'x' * 100_000}").status in {400, 414, 431}
    assert 200 == page.ask("/").status


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_name_that_leads_here_is_refused(page: Served, host: str) -> None:
    """As a foreign page does that has its name changed to 127.0.0.1: DNS rebinding."""
    for path in ("/", "/data/state", "/metrics", "/data/stream"):
        answer = page.ask(path, Host=host)

        assert 421 == answer.status
        assert b"cpu_milli" not in answer.body


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST:8642"])
def test_names_of_this_machine_are_let_through(page: Served, host: str) -> None:
    assert 200 == page.ask("/data/state", Host=host).status


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": "Bearer "},
        {"Cookie": "omega_web="},
        {"Cookie": f"omega_web={TOKEN}"},
        {"Cookie": f"other={TOKEN}"},
        {"Cookie": "=;;;\x7f"},
    ],
)
def test_without_the_token_nothing_is_told(closed: Served, headers: dict[str, str]) -> None:
    for path in [*PAGES, *DATA, "/data/stream", f"/data/state?token={TOKEN}", "/static/app.js"]:
        answer = closed.ask(path, **headers)

        assert 401 == answer.status
        assert b"A token is needed" in answer.body
    assert 200 == closed.ask("/login").status
    assert closed.ask("/healthz").status in {200, 503}


def test_a_browser_without_the_token_is_led_to_the_form(closed: Served) -> None:
    answer = closed.ask("/queue", Accept="text/html,*/*")

    assert (303, "/login") == (answer.status, answer.headers["location"])


def test_the_token_opens_the_page_and_so_does_the_cookie_of_a_login(closed: Served) -> None:
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    wrong = closed.ask("/login", method="POST", body="token=wrong", **form)
    right = closed.ask("/login", method="POST", body=f"token={TOKEN}", **form)
    cookie = right.headers["set-cookie"]

    assert (401, False) == (wrong.status, "set-cookie" in wrong.headers)
    assert (303, "/") == (right.status, right.headers["location"])
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    for opened in ({"Cookie": cookie.partition(";")[0]}, {"Authorization": f"bearer {TOKEN}"}):
        assert 200 == closed.ask("/data/state", **opened).status
        assert 200 == closed.ask("/data/state", Host="cell.example", **opened).status
    assert 413 == closed.ask("/login", method="POST", body="token=" + "x" * 5_000, **form).status
    assert {"a login with a wrong token"} <= set(closed.log) <= WRONG


def test_streams_are_limited_and_one_that_ends_makes_room(page: Served) -> None:
    with ExitStack() as stack:
        for _ in range(LIMITS.web_streams_max - 1):
            assert 200 == stack.enter_context(page.stream()).status
        with page.stream() as last:
            assert 200 == last.status
            refused = page.ask("/data/stream")
            assert 503 == refused.status
            assert page.log == ["a browser is turned away: 100 look at the page already"]
            assert b"As many browsers look at this page as may" in refused.body
            assert 200 == page.ask("/data/state").status
        while page.ask("/metrics").body.count(b"omega_page_streams 100.0"):
            pass

        with page.stream() as again:
            assert 200 == again.status


def test_it_ends_with_streams_open(store: Store) -> None:
    with served(store) as page, page.stream() as first, page.stream() as second:
        next(events(first))

        page.end()

        for stream in (first, second):
            while stream.readline():
                pass
        with pytest.raises(OSError):  # noqa: PT011 - refused, or reset
            page.ask("/")


def test_health_and_metrics_say_how_the_cell_is(page: Served) -> None:
    assert (200, b"ok\n") == (page.ask("/healthz").status, page.ask("/healthz").body)

    metrics = page.ask("/metrics")

    assert metrics.headers["content-type"].startswith("text/plain")
    assert b"omega_up 1.0" in metrics.body
    assert b"omega_tasks_running 2.0" in metrics.body


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("cell.example", False),
        ("", False),
    ],
)
def test_what_other_machines_reach_demands_a_token(
    host: str,
    loopback: bool,  # noqa: FBT001 - of the table above
) -> None:
    assert loopback == is_loopback(host)
    assert checked_token(host, TOKEN) is not None
    if loopback:
        assert checked_token(host, None) is None
    else:
        with pytest.raises(BadInput, match="token is needed"):
            checked_token(host, None)


def test_a_short_token_is_refused() -> None:
    with pytest.raises(BadInput, match="31 characters"):
        checked_token(HOST, "x" * 31)


def test_a_request_that_is_none_is_refused(page: Served) -> None:
    for said in (b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET\r\n\r\n"):
        with socket.create_connection((HOST, page.port), timeout=30) as connection:
            connection.sendall(said)
            assert b"400" in connection.recv(100)
    assert 200 == page.ask("/").status
