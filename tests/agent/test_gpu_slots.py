"""Tasks that are moved from and to GPUs all the time, each as a real process.

The cell gives the room of an evicted task away at once. Whether two programs ever have one GPU at
a time is told by the programs themselves: each holds a lock on its device's file for as long as
anything of it runs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from omega.clock import RealClock
from omega.framework.effects import Call, Effect, drive
from omega.model.jobs import PRECEDENCE_GAP
from omega.model.programs import Program, shell_line
from omega.model.resources import DEVICES, GPU_SLICES
from omega.nodes.agent.agent import Agent
from omega.nodes.agent.own_machine import OwnMachine, TaskDrivers
from omega.nodes.agent.process_driver import ProcessDriver
from omega.nodes.agent.records import Records
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job, evicting
from omega.testing.steps import a_leased_job, add_a_cell
from tests.agent.waiting import until
from tests.fixtures.doses import Dose, Tallier

GPUS: Final = 4
PROGRAM: Final = """\
exec 9>"$SLOTS/$CUDA_VISIBLE_DEVICES"
flock --nonblock 9 || echo "$OMEGA_JOB on $CUDA_VISIBLE_DEVICES" >>"$SLOTS/overlaps"
echo "$OMEGA_JOB" >>"$SLOTS/begins"
trap 'sleep $GRACE; exit 1' TERM
while :; do sleep 0.01; done
"""
GRACES: Final = ("0", "0.02", "0.1", "1000")
"""How long a program takes to end after SIGTERM, in seconds; the last is killed."""
STOP_GRACE_MS: Final = 200


@dataclass
class Gpus:
    """A machine with GPUs on a store in memory, and its agent with real processes."""

    folder: Path

    def __post_init__(self) -> None:
        self.clock = RealClock()
        self.store = MemoryStore(self.clock)
        (self.machine,) = add_a_cell(self.store, 1, gpus=GPUS)
        self.slots = self.folder / "slots"
        self.slots.mkdir()
        self.restart_agent()

    def restart_agent(self) -> None:
        """Have another agent go on with what the first one started, as after kill -9."""
        self.driver = ProcessDriver(self.folder / "tasks", self.clock)
        self.agent = Agent(
            OwnMachine(id=self.machine, name="m1", capacity=self.store.snapshot().rows.capacity[0]),
            TaskDrivers(processes=self.driver),
            Records(self.folder / "records"),
            clock=self.clock,
            sink=lambda _: None,
            poll_s=0.01,
        )

    def move(self, number: int, slot: int, grace: str) -> None:
        """Give a GPU to a new job, which evicts the task that has it."""
        program = Program(
            command=shell_line(PROGRAM),
            env=(("GRACE", grace), ("SLOTS", str(self.slots))),
            stop_grace_ms=STOP_GRACE_MS,
        )
        spec = a_spec(program=program, precedence=number * PRECEDENCE_GAP, cpu_milli=0)
        job = a_leased_job(self.store, spec)
        claim = a_claim(0, machine=self.machine, **{f"gpu_{slot}": GPU_SLICES})
        holders = self.holders(slot)
        claim = evicting(claim, *((0, holder, 0) for holder in holders))
        assert self.store.commit(a_transaction(claims_of_job(job, claim))).accepted.all()
        for evicted in holders:
            self.store.cancel(evicted)

    def holders(self, slot: int) -> list[int]:
        """Return the job that has a GPU, if any has; all jobs have one task."""
        live = self.store.allocations()
        return list(map(int, live.job[live.amounts[:, DEVICES][:, slot] > 0]))

    def step(self) -> None:
        drive(self.agent.step(), self._answer)

    def _answer(self, effect: Effect) -> object:
        assert isinstance(effect, Call)
        return effect.make(self.store)

    def lines(self, name: str) -> list[str]:
        path = self.slots / name
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def gpus(tmp_path: Path) -> Iterator[Gpus]:
    """Yield the machine; end what is left on it."""
    gpus = Gpus(tmp_path)
    yield gpus
    drive(gpus.agent.wind_down(), lambda effect: _end(gpus, effect))


def _end(gpus: Gpus, effect: Effect) -> object:
    for key, exit_ in gpus.driver.look().items():
        if exit_ is None:
            gpus.driver.signal(key, "KILL")
    return effect.make(gpus.store) if isinstance(effect, Call) else None


def test_no_gpu_has_two_programs_while_tasks_are_evicted(
    gpus: Gpus, dose: Dose, tally: Tallier
) -> None:
    rng = np.random.default_rng(1)
    moves = dose(20, 1_000)
    with tally("moves of a GPU to another program", of="agents") as row:
        number = 0
        while len(begins := gpus.lines("begins")) < moves:
            number += 1
            # Some are evicted before they have begun, and some before they trap the signal.
            gpus.move(number, int(rng.integers(GPUS)), GRACES[rng.integers(len(GRACES))])
            if rng.random() < 0.05:
                gpus.restart_agent()
            for _ in range(rng.integers(20)):
                gpus.step()
                gpus.clock.sleep(0.01)
        row.tried = len(begins)
        row.survived = len(begins) - len(gpus.lines("overlaps"))
        assert [] == gpus.lines("overlaps")
        assert len(begins) == len(set(begins)), "no job was begun twice"
        assert number > len(begins), "some were evicted before they began"
    assert [] == list(gpus.store.verify())


def test_who_holds_a_gpu_in_the_end_runs(gpus: Gpus) -> None:
    for number, slot in enumerate((0, 0, 1, 0, 1), start=1):
        gpus.move(number, slot, "1000")
        gpus.step()
    holders = {str(job) for slot in range(2) for job in gpus.holders(slot)}

    def all_begun() -> bool:
        gpus.step()
        return holders <= set(gpus.lines("begins"))

    assert len(holders) == 2
    until(all_begun)
    assert [] == gpus.lines("overlaps")
