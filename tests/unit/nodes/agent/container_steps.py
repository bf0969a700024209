"""What tests of the container driver do with an engine that runs nothing."""

import threading
from pathlib import Path

from omega.clock import RealClock
from omega.model.programs import Program
from omega.nodes.agent.container_driver import ContainerDriver
from omega.nodes.agent.task_driver import Launch, Stream, TaskKey
from tests.agent.waiting import ended, until
from tests.unit.nodes.agent.fake_engine import IMAGE, FakeEngine

KEY, OTHER, THIRD = (TaskKey(job, 0, 1_000) for job in (1, 2, 3))
AWAY = "away:1"
AGENT = "a"


def opened(
    engine: FakeEngine, folder: Path, said: list[str], *, outputs_max: int = 1_000
) -> ContainerDriver:
    return ContainerDriver(
        folder / "containers",
        RealClock(),
        agent=AGENT,
        engine=engine.address,
        outputs_max=outputs_max,
        warn=said.append,
    )


def a_launch(key: TaskKey = KEY, image: str = IMAGE, restarts: int = 0) -> Launch:
    program = Program(command=("x",), image=image)
    return Launch(key=key, program=program, env={}, cpu_milli=0, memory_mib=0, restarts=restarts)


def labels(key: TaskKey = KEY, restarts: int = 0) -> dict[str, str]:
    return {"omega.agent": AGENT, "omega.task": str(key), "omega.restarts": str(restarts)}


def starters() -> list[threading.Thread]:
    return [it for it in threading.enumerate() if it.name.startswith("container")]


def running(driver: ContainerDriver, engine: FakeEngine, key: TaskKey = KEY) -> str:
    """Wait until the container of a task runs; return its id."""

    def ids() -> list[str]:
        driver.look()
        return [
            name
            for name, it in engine.containers.items()
            if labels(key).items() - {("omega.restarts", "0")} <= it["Labels"].items()
            and it["State"] == "running"
        ]

    until(lambda: ids() and not driver._starting)  # noqa: SLF001
    (name,) = ids()
    return name


def run_to_end(driver: ContainerDriver, engine: FakeEngine, launch: Launch) -> None:
    driver.start(launch)
    engine.end(running(driver, engine, launch.key))
    ended(driver, launch.key)


def stdout(driver: ContainerDriver, key: TaskKey = KEY) -> tuple[int, bytes]:
    return driver.output(key, Stream.STDOUT, 100)
