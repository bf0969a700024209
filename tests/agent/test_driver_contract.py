"""The process driver keeps what every driver promises."""

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from omega.clock import RealClock
from omega.nodes.agent.own_address import LOOPBACK
from omega.nodes.agent.process_driver import ProcessDriver
from omega.nodes.agent.task_driver import TaskDriver
from tests.agent.driver_contract import DriverContract
from tests.agent.waiting import ended


class TestProcessDriver(DriverContract):
    """The contract, with processes."""

    serve = f"exec {sys.executable} -m http.server --bind 127.0.0.1 $PORT"

    @pytest.fixture
    def driver(self, tmp_path: Path) -> Iterator[TaskDriver]:
        """Yield a driver; kill what it left running."""
        with socket.create_server((LOOPBACK, 0)) as server:
            self.port = server.getsockname()[1]
        self.folder = tmp_path / "tasks"
        driver = ProcessDriver(self.folder, RealClock())
        yield driver
        for key in driver.look():
            driver.signal(key, "KILL")
            ended(driver, key)

    def another(self, driver: TaskDriver) -> TaskDriver:
        """Return a new driver of the same folder."""
        return ProcessDriver(self.folder, RealClock())
