"""A headless Chromium, as Debian has it, driven through its driver."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

PROGRAMS = ("chromium", "chromedriver")
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
)
WIDE = (1280, 900)
PHONE = (390, 844)
WAIT_S = 60

Driver = webdriver.Chrome


def is_here() -> bool:
    """Return whether this machine has the browser and its driver."""
    return all(map(shutil.which, PROGRAMS))


@contextmanager
def browser(profile: Path) -> Iterator[Driver]:
    """Yield a browser with a new profile in this folder."""
    options = Options()
    for argument in (*ARGUMENTS, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.binary_location = str(shutil.which("chromium"))
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, Service(str(shutil.which("chromedriver"))))
    try:
        driver.get("about:blank")
        complaints(driver)  # of the browser's own first page
        yield driver
    finally:
        driver.quit()


def looks_like(driver: Driver, size: tuple[int, int], *, dark: bool = False) -> None:
    """Give the window a size, and the pages the colours that their reader prefers."""
    width, height = size
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )
    preferred = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": preferred})


def wait_for(driver: Driver, script: str) -> Any:  # noqa: ANN401 - of JavaScript
    """Wait until a script returns something true; return it."""
    return WebDriverWait(driver, WAIT_S, poll_frequency=0.1).until(
        lambda it: it.execute_script(f"return {script}")
    )


def complaints(driver: Driver) -> list[str]:
    """Return what the console says that is no mere information, and requests that failed."""
    said = [entry["message"] for entry in _log(driver, "browser") if entry["level"] != "INFO"]
    events: list[Mapping[str, Any]] = [
        json.loads(entry["message"])["message"] for entry in _log(driver, "performance")
    ]
    for event in events:
        told = event["params"]
        match event["method"]:
            case "Network.loadingFailed" if not told.get("canceled"):
                said.append(f"a request failed: {told['errorText']}")
            case "Network.responseReceived" if told["response"]["status"] >= 400:
                said.append(f"{told['response']['status']} for {told['response']['url']}")
            case _:
                pass
    return said


def _log(driver: Driver, name: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = driver.get_log(name)  # type: ignore[no-untyped-call]
    return entries


def shot(driver: Driver, file: Path) -> None:
    """Write what the window shows as a PNG file."""
    assert driver.save_screenshot(str(file))
