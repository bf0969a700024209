"""The process driver keeps what every driver promises."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from omega.clock import RealClock
from omega.nodes.agent.process_driver import ProcessDriver
from omega.nodes.agent.task_driver import TaskDriver
from tests.agent.driver_contract import DriverContract
from tests.agent.waiting import ended


class TestProcessDriver(DriverContract):
    """The contract, with processes."""

    @pytest.fixture
    def driver(self, tmp_path: Path) -> Iterator[TaskDriver]:
        """Yield a driver; kill what it left running."""
        self.folder = tmp_path / "tasks"
        driver = ProcessDriver(self.folder, RealClock())
        yield driver
        for key in driver.look():
            driver.signal(key, "KILL")
            ended(driver, key)

    def another(self, driver: TaskDriver) -> TaskDriver:
        """Return a new driver of the same folder."""
        return ProcessDriver(self.folder, RealClock())
