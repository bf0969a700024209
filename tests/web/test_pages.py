"""Each page in a real browser: at two widths, light and dark, live, and readable by everybody."""

from collections.abc import Iterator
from importlib.resources import files
from typing import Any, cast

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from omega.clock import RealClock
from omega.errors import StoreUnavailable
from omega.lifecycle.states import ParkReason
from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.model.outcomes import Verdict
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.store.leases import Parking
from omega.store.memory.store import MemoryStore
from omega.store.protocols import Store
from omega.testing.builders import a_cell, a_spec, a_transaction, claims_of_job, some_claims
from omega.testing.steps import a_running_job, submit_and_lease
from tests.fixtures.pages import TOKEN, Locked, Served, served
from tests.web.browser import PHONE, WIDE, Driver, complaints, looks_like, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>"
PATHS = ("/", "/queue", "/jobs", "/job/1", "/job/2", "/machine/1", "/schedulers", "/shares")
LIVE = "document.getElementById('status').textContent.startsWith('live')"
SHOWN = f"{LIVE} && document.querySelector('main table, main .empty')"


class Absent(Locked):
    """A store that may be away."""

    is_away = False

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of any method
        if self.is_away:
            raise StoreUnavailable("gone fishing")
        return super().__getattr__(name)


def a_store() -> Absent:
    """Return a small cell with a conflict, and with markup wherever users name things."""
    store = MemoryStore(RealClock())
    store.add_machines(a_cell(40, cpu_milli=2_000, gpus=1, attributes={MARKUP: [MARKUP] * 40}))
    store.set_state(integers([5]), MachineState.DOWN)
    a_running_job(store, a_spec(2, name=MARKUP, tenant=MARKUP), [1, 2], cpu_milli=1_500)
    parked, loser = submit_and_lease(store, a_spec(tenant=MARKUP), a_spec(name="loser"))
    store.park([Parking(parked.id, parked.token, ParkReason.NEVER_FITS, MARKUP)])
    refused = store.commit(
        a_transaction(claims_of_job(loser, some_claims([0], [1], cpu_milli=1_000)), replica=MARKUP)
    )
    assert [Verdict.OVERCOMMIT] == refused.verdicts.tolist()
    store.set_quota(Quota(QuotaScope.TENANT, MARKUP, {Budget.CPU_MILLI: 4_000}))
    store.report("batch", MARKUP, pid=1, facts={})
    return Absent(store)


@pytest.fixture(scope="module")
def page() -> Iterator[Served]:
    """A page for tests that change nothing."""
    with served(cast(Store, a_store())) as page:
        yield page


def open_page(chromium: Driver, page: Served, path: str) -> None:
    complaints(chromium)
    chromium.get(page.address + path)
    wait_for(chromium, SHOWN)


def text_of(chromium: Driver, selector: str = "main") -> str:
    return chromium.find_element(By.CSS_SELECTOR, selector).text


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("path", PATHS)
def test_a_page_shows_without_complaint_at_both_widths(
    chromium: Driver, page: Served, path: str, size: tuple[int, int]
) -> None:
    looks_like(chromium, size)
    open_page(chromium, page, path)

    assert [] == complaints(chromium)
    width = chromium.execute_script("return document.documentElement.scrollWidth")
    assert width <= size[0], "the page is wider than its window"
    assert MARKUP in text_of(chromium), "names are shown as they are"
    found = "return document.querySelectorAll('main script, main img').length"
    assert 0 == chromium.execute_script(found)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("path", PATHS)
def test_a_page_keeps_nobody_out(
    chromium: Driver,
    page: Served,
    path: str,
    dark: bool,  # noqa: FBT001 - light or dark
) -> None:
    looks_like(chromium, WIDE, dark=dark)
    open_page(chromium, page, path)
    chromium.execute_script(files("axe_core_python").joinpath("axe.min.js").read_text())

    report = chromium.execute_async_script(
        "const done = arguments[0]; axe.run().then(done, (error) => done({error: String(error)}));"
    )

    serious = [it for it in report["violations"] if it["impact"] in {"serious", "critical"}]
    told = [(it["id"], [node["html"] for node in it["nodes"]][:3]) for it in serious]
    assert [] == told


def test_more_tabs_are_live_than_a_browser_has_connections(chromium: Driver, page: Served) -> None:
    first = chromium.current_window_handle
    tabs = 8  # Chromium keeps six connections to one server
    for _ in range(tabs):
        chromium.switch_to.new_window("tab")
        open_page(chromium, page, "/queue")
    for tab in chromium.window_handles:
        if tab != first:
            chromium.switch_to.window(tab)
            wait_for(chromium, LIVE)
            chromium.close()
    chromium.switch_to.window(first)


def test_what_changes_arrives_by_itself(chromium: Driver) -> None:
    store = cast(Store, a_store())
    looks_like(chromium, WIDE)
    with served(store) as page:
        open_page(chromium, page, "/queue")
        (job,) = submit_and_lease(store, a_spec(tenant="latecomer"))
        store.park([Parking(job.id, job.token, ParkReason.NO_ROOM, "")])

        wait_for(chromium, "document.querySelector('main').textContent.includes('latecomer')")

        assert [] == complaints(chromium)


def test_a_machine_changes_its_colour_while_one_looks(chromium: Driver) -> None:
    store = cast(Store, a_store())
    looks_like(chromium, WIDE)
    with served(store) as page:
        open_page(chromium, page, "/")
        a_pixel = (
            "document.querySelector('.map canvas').getContext('2d')"
            ".getImageData(50, 4, 1, 1).data.join()"
        )
        before = chromium.execute_script(f"return {a_pixel}")
        a_running_job(store, a_spec(scheduler="batch"), [3], cpu_milli=2_000)

        wait_for(chromium, f"{a_pixel} !== '{before}'")


def test_the_map_is_read_by_keyboard_and_leads_to_a_machine(chromium: Driver, page: Served) -> None:
    looks_like(chromium, WIDE)
    open_page(chromium, page, "/")
    canvas = chromium.find_element(By.CSS_SELECTOR, ".map canvas")
    told = "document.getElementById('told').textContent"
    canvas.send_keys(Keys.HOME)
    wait_for(chromium, f"{told}.startsWith('machine-1:') && {told}.includes('CPU 75 %')")
    for _ in range(4):
        canvas.send_keys(Keys.ARROW_RIGHT)
    wait_for(chromium, f"{told}.startsWith('machine-5: down')")

    canvas.send_keys(Keys.ENTER)

    wait_for(chromium, "document.querySelector('h1')?.textContent === 'Machine machine-5'")
    chromium.back()
    wait_for(chromium, "document.querySelector('h1')?.textContent === 'Cell'")


def test_the_matrix_says_who_refused_whom_and_why(chromium: Driver, page: Served) -> None:
    looks_like(chromium, WIDE)
    open_page(chromium, page, "/schedulers")
    cell = chromium.find_element(By.CSS_SELECTOR, ".matrix td[tabindex]")

    cell.send_keys("")

    expected = f"batch {MARKUP} was refused 1 claims by batch 0: 1 overcommit"
    assert expected == text_of(chromium, "#told")


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/job/3", f"refused 1 claim: 1 overcommit, taken by batch 0 for job 1 batch {MARKUP} 1"),
        ("/machine/1", "placed task 0 of job 1 batch 0 1"),
    ],
)
def test_a_job_and_a_machine_tell_their_stories(
    chromium: Driver, page: Served, path: str, told: str, size: tuple[int, int]
) -> None:
    looks_like(chromium, size)
    open_page(chromium, page, path)
    rows = "[...document.querySelectorAll('[aria-label=\"What happened when\"] tbody tr')]"

    wait_for(chromium, f"{rows}.length > 1")

    said = chromium.execute_script(
        f"return {rows}.map((row) => [...row.querySelectorAll('td')].slice(0, -1)"
        ".map((cell) => cell.textContent.trim()).join(' '))"
    )
    assert told in said
    assert [] == complaints(chromium)
    width = chromium.execute_script("return document.documentElement.scrollWidth")
    assert width <= size[0], "the page is wider than its window"


def test_one_finds_a_machine_and_a_job_by_name(chromium: Driver, page: Served) -> None:
    looks_like(chromium, WIDE)
    open_page(chromium, page, "/")
    for text, heading in (("machine-7", "Machine machine-7"), ("loser", "Job 3: loser")):
        field = chromium.find_element(By.ID, "find-text")
        field.clear()
        field.send_keys(text, Keys.ENTER)
        wait_for(chromium, f"document.querySelector('h1')?.textContent === '{heading}'")
    field = chromium.find_element(By.ID, "find-text")
    field.clear()
    field.send_keys(MARKUP + "!", Keys.ENTER)
    wait_for(chromium, "document.querySelector('h1')?.textContent === 'Nothing found'")


def test_a_store_that_is_away_is_told_and_comes_back(chromium: Driver) -> None:
    store = a_store()
    looks_like(chromium, WIDE)
    with served(cast(Store, store)) as page:
        open_page(chromium, page, "/")
        store.is_away = True
        shown = "!document.getElementById('away').hidden"
        wait_for(chromium, shown)
        assert "Database away since" in text_of(chromium, "#away")
        assert "40" in text_of(chromium), "what was seen before is still shown"

        store.is_away = False
        wait_for(chromium, f"!({shown})")

        assert ["the database is away, and the page goes on without it: gone fishing"] == [
            line for line in page.log if "away" in line
        ]


def test_a_browser_logs_in(chromium: Driver) -> None:
    looks_like(chromium, PHONE)
    with served(cast(Store, a_store()), token=TOKEN) as page:
        chromium.get(page.address + "/queue")
        field = chromium.find_element(By.ID, "token")
        field.send_keys("wrong", Keys.ENTER)
        wait_for(chromium, "document.querySelector('[role=alert]')")
        assert "That is not the token." == text_of(chromium, "[role=alert]")

        chromium.find_element(By.ID, "token").send_keys(TOKEN, Keys.ENTER)

        wait_for(chromium, SHOWN)
        assert page.address + "/" == chromium.current_url
        chromium.delete_all_cookies()
