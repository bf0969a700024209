"""What agents cost that have nothing to do: calls a second, and the processors of the database.

Each agent is the product's own, with its lease, its polls and its reports. One process answers all
of them in real time over a few sessions, as a pooler would; nothing is placed on their machines.
"""

import heapq
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Annotated, Any, Final
from uuid import uuid4

import numpy as np
import psutil
import typer
from rich.table import Table

from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seconds, Seed, Smoke, numbers
from benchmarks.postgres import statements
from omega.errors import OmegaError
from omega.events import Event as ProcessEvent
from omega.framework.effects import Call, Effect, Effects, Wait
from omega.framework.timer import Timer
from omega.model.machines import Machines
from omega.model.resources import machine_capacity
from omega.nodes.agent.agent import PAUSE_GROWTH, Agent
from omega.nodes.agent.live import REPORT_INTERVAL_MS
from omega.nodes.agent.machine_lease import RENEW_AT, MachineLease
from omega.nodes.agent.own_machine import OwnMachine, TaskDrivers
from omega.nodes.agent.process_driver import ProcessDriver
from omega.nodes.agent.records import Records
from omega.nodes.calling import called
from omega.plots.picture import Picture, bars
from omega.reports.processes import AGENT
from omega.store.postgres.connection import Link
from omega.store.postgres.schema import migrate
from omega.store.postgres.store import PostgresStore
from omega.terminal.progress import progress_bar

SESSIONS: Final = 8
LEASE_S: Final = 30.0
"""What `omega node run` asks for unless told otherwise."""
KEPT_UP: Final = 0.9
"""An arm whose agents made less of their calls than this share was too much for this machine."""
CAPACITY: Final = machine_capacity(cpu_milli=4_000, memory_mib=4_096)


@dataclass(frozen=True)
class Arm:
    """So many agents, and how often each asks."""

    agents: int
    poll_ms: int

    def __str__(self) -> str:
        return f"{self.agents} every {self.poll_ms / 1_000:g} s"

    @property
    def warm_up_s(self) -> float:
        """When the pause between polls has grown to its longest, and all agents have begun."""
        return 3.0 + self.poll_ms / 1_000 * PAUSE_GROWTH / (PAUSE_GROWTH - 1)

    @property
    def calls_per_s(self) -> float:
        """The calls that they are to make."""
        # A lease is renewed by the first poll after a fifth of it.
        renewal_ms = ceil(RENEW_AT * LEASE_S * 1_000 / self.poll_ms) * self.poll_ms
        each = 1 / self.poll_ms + 1 / REPORT_INTERVAL_MS + 1 / renewal_ms
        return self.agents * 1_000 * each


@dataclass(frozen=True, kw_only=True)
class IdleAgents:
    """The parameters of the benchmark."""

    agents: tuple[int, ...] = (100, 300, 1_000)
    polls_ms: tuple[int, ...] = (200, 1_000, 5_000)
    """How often an agent asks whether its machine has changed: OMEGA_POLL_INTERVAL_MS."""
    extrapolated: int = 10_000
    """For so many agents the cost is told in proportion."""
    seconds: float = 180.0
    seed: int = 0

    @property
    def arms(self) -> list[Arm]:
        """Each number of agents with each interval."""
        return [Arm(agents, poll_ms) for agents in self.agents for poll_ms in self.polls_ms]

    def measure(self, stage: Stage) -> Findings:
        """Run each arm for its share of the time."""
        rows = []
        with ExitStack() as stack:
            url = stack.enter_context(stage.database())
            migrate(url)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="omega-")))
            stores = [
                stack.enter_context(closing(PostgresStore(url, application_name="omega agents")))
                for _ in range(SESSIONS)
            ]
            link = stack.enter_context(closing(statements.connect(url)))
            machines = _register(stores[0], max(self.agents))
            progress = stack.enter_context(progress_bar(stage.output.console))
            bar = progress.add_task("", total=len(self.arms))
            for arm in self.arms:
                progress.update(bar, description=str(arm))
                crowd = Crowd(arm, machines[: arm.agents], stores, folder / str(arm), stage)
                rows.append(self._row(arm, crowd, link))
                for machine in machines[: arm.agents]:  # for the agents of the next arm
                    stores[0].leave_machine(machine.id, crowd.holder)
                progress.advance(bar)
        summary = {"cores_extrapolated": self._extrapolated(rows)}
        done = {str(arm): row["calls"] for arm, row in zip(self.arms, rows, strict=True)}
        return Findings(_finding(rows), rows, summary, done)

    def show(self, findings: Findings) -> Table:
        """Return a line for each arm."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        for head in ("agents", "poll", "calls/s", "of wanted", "database, cores", "agents, cores"):
            table.add_column(head, justify="right")
        for row in findings.rows:
            table.add_row(
                f"{row['agents']:,}",
                f"{row['poll_ms'] / 1_000:g} s",
                f"{row['calls_per_s']:,.0f}",
                f"{row['kept_up']:.0%}",
                f"{row['database_cores']:.3f}",
                f"{row['agents_cores']:.3f}",
            )
        return table

    def draw(self, findings: Findings) -> Picture:
        """Return the processors of the database by arm."""
        picture = Picture(
            findings.finding,
            note=f"idle agents, each asking at its interval; {self.seconds / len(self.arms):.0f} s"
            " each",
        )
        ((panel,),) = picture.panels
        names = [str(Arm(row["agents"], row["poll_ms"])) for row in findings.rows]
        bars(panel, names, {"": [row["database_cores"] for row in findings.rows]})
        panel.set_xlabel("processors that Postgres keeps busy")
        return picture

    def _extrapolated(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        """Return the processors that so many agents would keep busy, by interval.

        In proportion to the largest number of agents that this machine kept up with.
        """
        largest = {row["poll_ms"]: row for row in rows if row["kept_up"] >= KEPT_UP}
        return {
            f"{poll_ms} ms": round(row["database_cores"] * self.extrapolated / row["agents"], 2)
            for poll_ms, row in largest.items()
        }

    def _row(self, arm: Arm, crowd: "Crowd", link: Link) -> dict[str, Any]:
        crowd.run(arm.warm_up_s if self.seconds >= len(self.arms) else 0.0)
        before, crowd.calls = (statements.cpu_s_of_server(link), _own_cpu_s()), Counter()
        took_s = crowd.run(self.seconds / len(self.arms))
        spent_s = (statements.cpu_s_of_server(link) - before[0], _own_cpu_s() - before[1])
        calls = crowd.calls.total()
        return {
            "arm": str(arm),
            "agents": arm.agents,
            "poll_ms": arm.poll_ms,
            "calls": calls,
            "calls_per_s": round(calls / took_s, 1),
            "kept_up": round(calls / took_s / arm.calls_per_s, 3),
            "database_cores": round(spent_s[0] / took_s, 4),
            "agents_cores": round(spent_s[1] / took_s, 4),
            "by_call": dict(crowd.calls),
        }


class Crowd:
    """Agents in one process, each answered when its time has come."""

    def __init__(
        self,
        arm: Arm,
        machines: Sequence[OwnMachine],
        stores: Sequence[PostgresStore],
        folder: Path,
        stage: Stage,
    ) -> None:
        self.holder = uuid4()
        self.calls: Counter[str] = Counter()
        self._stage = stage
        self._stores = stores
        self._driver = ProcessDriver(folder / "tasks", stage.clock)
        """Of all of them: on none of their machines does anything run."""
        self._lives = [self._life(one, folder, arm.poll_ms / 1_000) for one in machines]
        now_s = stage.clock.now()
        starts = now_s + np.linspace(0.0, 1.0, len(machines))
        self._due = [(float(at), number) for number, at in enumerate(starts)]

    def run(self, seconds: float) -> float:
        """Answer them for so long; return for how long it really was."""
        clock = self._stage.clock
        began = clock.now()
        while (now := clock.now()) < began + seconds:
            self._stage.go_on()
            due, number = self._due[0]
            if due > now:
                clock.sleep(min(due, began + seconds) - now)
                continue
            wait_s = self._answered(self._lives[number], self._stores[number % len(self._stores)])
            heapq.heapreplace(self._due, (clock.now() + wait_s, number))
        return clock.now() - began

    def _answered(self, life: Effects[None], store: PostgresStore) -> float:
        """Answer an agent's calls until it waits; return for how long."""
        effect: Effect = life.send(None)
        while isinstance(effect, Call):
            self.calls[effect.operation] += 1
            effect = life.send(effect.make(store))
        assert isinstance(effect, Wait)
        return effect.seconds

    def _life(self, machine: OwnMachine, folder: Path, poll_s: float) -> Effects[None]:
        clock = self._stage.clock
        agent = Agent(
            machine,
            TaskDrivers(processes=self._driver),
            Records(folder / "records" / machine.name),
            clock=clock,
            sink=_said,
            poll_s=poll_s,
            lease=MachineLease(self.holder, LEASE_S),
        )
        reports = Timer(clock, REPORT_INTERVAL_MS)

        def report() -> Effects[None]:
            if reports.due():
                yield from called(
                    "report",
                    lambda cell: cell.report(AGENT, machine.name, pid=1, facts={"tasks": 0}),
                )

        return agent.life(self._stage.stop, report)


def _said(event: ProcessEvent) -> None:
    raise OmegaError(f"an idle agent has nothing to say, and said {event}")


def _register(store: PostgresStore, agents: int) -> list[OwnMachine]:
    names = [f"idle-{number}" for number in range(agents)]
    return [
        OwnMachine(
            id=store.register_machine(Machines((name,), CAPACITY[None, :], {}), None),
            name=name,
            capacity=CAPACITY,
        )
        for name in names
    ]


def _own_cpu_s() -> float:
    times = psutil.Process().cpu_times()
    return float(times.user + times.system)


def _finding(rows: Sequence[Mapping[str, Any]]) -> str:
    most = max(row["agents"] for row in rows)
    said = ", ".join(
        f"{row['database_cores']:.2f} with a poll each {row['poll_ms'] / 1_000:g} s"
        + ("" if row["kept_up"] >= KEPT_UP else f" ({row['kept_up']:.0%} of the calls due)")
        for row in rows
        if row["agents"] == most
    )
    return f"Processors of the database that {most:,} idle agents keep busy: {said}"


SMOKE: Final = IdleAgents(agents=(2, 4), polls_ms=(50, 500), seconds=0.8)


def command(
    agents: Annotated[str, typer.Option(metavar="N,...", help="How many agents.")] = "100,300,1000",
    polls: Annotated[
        str, typer.Option(metavar="MS,...", help="How often each asks, in milliseconds.")
    ] = "200,1000,5000",
    seconds: Seconds = None,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """What agents without tasks cost the database. Takes six minutes."""
    benchmark = IdleAgents(
        agents=tuple(sorted(numbers(agents, option="--agents", most=100_000))),
        polls_ms=numbers(polls, option="--polls", most=3_600_000),
        seed=seed,
    )
    if smoke:
        benchmark = SMOKE
    if seconds is not None:
        benchmark = replace(benchmark, seconds=seconds)
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
