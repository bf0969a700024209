"""Tests in a real browser; they are skipped where there is none."""

from collections.abc import Iterator

import pytest

from tests.web.browser import PROGRAMS, Driver, browser, is_here


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """A headless browser for the tests of a module."""
    if not is_here():
        pytest.skip(f"there is no {' and '.join(PROGRAMS)}: apt-get install chromium-driver")
    with browser(tmp_path_factory.mktemp("browser")) as driver:
        yield driver
