"""A cell on which the ML-GPU scheduler plays rounds in virtual time."""

import threading
from collections.abc import Callable, Mapping, Sequence

from omega.clock import ManualClock
from omega.config import Settings
from omega.events import Event, TransactionJudged
from omega.framework.runner import SchedulerProcess
from omega.model.arrays import integers
from omega.model.jobs import Constraint, JobSpec, StepWork
from omega.model.machines import Machines, MachineState
from omega.store.memory.store import MemoryStore
from omega.store.rounds import Round
from omega.testing.builders import a_cell, a_spec, join_cells
from omega.testing.pass_through import PassThrough
from schedulers.ml_gpu import MlGpuScheduler

MODELS = ("A3C", "LM (batch size 80)", "ResNet-18 (batch size 64)", "Recommendation")


def machines(type_: str, number: int, *, first: int = 1, gpus: int = 4) -> Machines:
    """Return machines of one GPU type; counted from `first`."""
    types = {"gpu_model": [type_] * number}
    return a_cell(number, cpu_milli=32_000, gpus=gpus, first=first, attributes=types)


def training(
    tasks: int = 1,
    *,
    gpus: int = 1,
    cpu_milli: int = 1_000,
    model: str = MODELS[0],
    constraints: tuple[Constraint, ...] = (),
    weight: int = 1,
    tenant: str = "default",
    precedence: int = 0,
) -> JobSpec:
    return a_spec(
        tasks,
        scheduler="ml-gpu",
        tenant=tenant,
        precedence=precedence,
        minimum=tasks,
        gpus=gpus,
        cpu_milli=cpu_milli,
        constraints=constraints,
        work=StepWork(kind=model, steps=10**9, weight=weight),
    )


class RunningSchedulers:
    """A cell, its jobs and the replica that plays their rounds."""

    def __init__(self, *cells: Machines, jobs: Sequence[JobSpec] = (), **settings: object) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock)
        self.events: list[Event] = []
        self.add(*cells)
        self.jobs = self.store.submit(jobs)
        self.told = {"round": "1"} | {name: str(value) for name, value in settings.items()}
        self.process = self.a_process()

    def add(self, *cells: Machines) -> None:
        self.store.add_machines(join_cells(*cells))

    def a_process(
        self, wrap: Callable[[MemoryStore], PassThrough] = PassThrough, *, seed: int = 0
    ) -> SchedulerProcess:
        return SchedulerProcess(
            scheduler=MlGpuScheduler.configured(self.told),
            store=wrap(self.store),
            open_store=lambda: self.store,
            clock=self.clock,
            settings=Settings(),
            sink=self.events.append,
            replica="0",
            run_seed=seed,
            stop=threading.Event(),
        )

    def play(self, rounds: int = 1) -> None:
        """Play so many rounds, each a second and a little longer."""
        for _ in range(rounds):
            self.process.step()
            self.clock.advance(1.001)
        assert [] == self.store.verify()

    def machines_of(self, job: int) -> list[int]:
        """Return the machines on which a job runs, a task an entry."""
        return [int(machine) for machine in self.store.allocations_of([job]).machine]

    def running(self) -> dict[int, set[str]]:
        """Return on which types each job runs."""
        live = self.store.allocations()
        snapshot = self.store.snapshot()
        column = snapshot.catalogue.column("gpu_model")
        assert column is not None
        names = [str(snapshot.catalogue.value(column, code)) for code in snapshot.codes[:, column]]
        on: dict[int, set[str]] = {}
        for job, machine in zip(live.job.tolist(), live.machine.tolist(), strict=True):
            on.setdefault(job, set()).add(names[machine - 1])
        return on

    @property
    def commits(self) -> list[TransactionJudged]:
        return [event for event in self.events if isinstance(event, TransactionJudged)]

    def record(self) -> Mapping[str, object]:
        """Return what the last round noted of its plan; a round has begun."""
        self.clock.advance(1.001)
        begun = self.store.begin_round("ml-gpu", holder="test", length_ms=0)
        assert isinstance(begun, Round)
        plan = begun.memo["plan"]
        assert isinstance(plan, dict)
        return plan

    def drain(self, *machine: int) -> None:
        self.store.set_state(integers(machine), MachineState.DRAINING)
