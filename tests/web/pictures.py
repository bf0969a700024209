"""Draws the pictures of the guide from a page that is served now.

omega demo --fill 0.8 --seconds 300 &
omega web --demo &
python -m tests.web.pictures http://127.0.0.1:8642 docs/guide
"""

import sys
import tempfile
from pathlib import Path
from typing import Final

from PIL import Image
from selenium.webdriver.support.ui import WebDriverWait

from tests.web.browser import PHONE, WAIT_S, Driver, browser, looks_like, shot, wait_for

PICTURES: Final = {
    "web-cell.png": ("/", (1_280, 1_080), False),
    "web-schedulers.png": ("/schedulers", (1_280, 730), False),
    "web-phone.png": ("/", PHONE, True),
}
"""By file: the path of the page, the size of its window, and whether it is dark."""
POINTS: Final = 50
"""Of the history, so that the charts have something to show."""
COLOURS: Final = 256
"""Of a picture, which keeps it small."""
HISTORY: Final = (
    "const done = arguments[0];"
    "fetch('/data/state').then((it) => it.json()).then((it) => done(it.history.length));"
)


def draw(driver: Driver, address: str, folder: Path) -> None:
    """Write all pictures into a folder."""
    driver.get(address)
    WebDriverWait(driver, 3 * WAIT_S).until(lambda it: it.execute_async_script(HISTORY) >= POINTS)
    for name, (path, size, dark) in PICTURES.items():
        looks_like(driver, size, dark=dark)
        driver.get(address.rstrip("/") + path)
        wait_for(driver, "document.getElementById('status').textContent.startsWith('live')")
        wait_for(driver, "document.querySelector('main table, .plot polyline[points]')")
        shot(driver, folder / name)
        with Image.open(folder / name) as picture:
            small = picture.convert("RGB").quantize(COLOURS, Image.Quantize.FASTOCTREE)
        small.save(folder / name, optimize=True)


if __name__ == "__main__":
    _, told, into = sys.argv
    with tempfile.TemporaryDirectory() as profile, browser(Path(profile)) as chromium:
        draw(chromium, told, Path(into))
