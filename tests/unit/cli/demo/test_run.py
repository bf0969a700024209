"""The demo's middle, on the store in memory, with schedulers in the test's own process."""

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from omega.cli.demo.run import DRAIN_S_MIN, START_S_MAX, DemoProcesses, DemoReplica, DemoRun, Played
from omega.cli.demo.screen import Moment
from omega.cli.demo.summary import Result
from omega.clock import ManualClock
from omega.config import Settings
from omega.errors import OmegaError, StoreUnavailable
from omega.events import ignore
from omega.framework.registry import find_scheduler
from omega.framework.retry import Retry
from omega.framework.runner import SchedulerProcess
from omega.model.claims import ConflictRule
from omega.processes.supervisor import ChildSpec, ChildState, Supervisor
from omega.reports.processes import ProcessState
from omega.store.feeding import Feeder
from omega.store.loading import NOTHING
from omega.store.memory.store import MemoryStore
from omega.store.status import Violation
from omega.terminal.terminal import PrintableConsole
from omega.testing.builders import a_cell, a_spec
from omega.workload.arrivals import Arrival

SETTINGS = Settings()


class Rehearsal(Supervisor):
    """Starts no process: each look lets every scheduler make one step."""

    def __init__(self, folder: Path, processes: Sequence[SchedulerProcess]) -> None:
        super().__init__([ChildSpec("batch-0", ())], log_dir=folder)
        self.children[0].state = ChildState.RUNNING
        self.processes = processes

    def look(self) -> None:
        for process in self.processes:
            process.step()


class Stage:
    """A demo of one batch scheduler on a cell of ten machines with four cores."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.stop = threading.Event()
        self.store = MemoryStore(self.clock)
        self.store.add_machines(a_cell(10))
        self.events = ["started"]
        self.shown: list[Moment] = []
        process = SchedulerProcess(
            scheduler=find_scheduler("batch")(),
            store=self.store,
            open_store=lambda: self.store,
            clock=self.clock,
            settings=SETTINGS,
            sink=ignore,
            replica="0",
            run_seed=1,
            stop=self.stop,
        )
        self.supervisor = Rehearsal(folder, [process])
        self.child = self.supervisor.children[0]
        self.members = [DemoReplica("batch", "0", ConflictRule.FIT, self.child)]

    def run(self, arrivals: Sequence[Arrival]) -> DemoRun:
        rng = np.random.default_rng(1)
        processes = DemoProcesses(self.supervisor, self.members, self.events)
        return DemoRun(
            self.store,
            processes,
            Feeder(arrivals, self.store),
            clock=self.clock,
            stop=self.stop,
            show=self.shown.append,
            seconds=3.0,
            retry=Retry(self.clock, processes.tell, SETTINGS, rng, self.stop),
        )


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


ARRIVALS = [Arrival(at, a_spec(4)) for at in (0.0, 1.0, 2.0)]
NEVER_FITS = Arrival(0.0, a_spec(cpu_milli=99_000))


def result_of(played: Played, stage: Stage, violations: Sequence[Violation] = ()) -> Result:
    return Result(
        played=played,
        loaded=NOTHING,
        load_machines_s=0.1,
        machines=10,
        members=stage.members,
        speedup=1.0,
        notes=(),
        violations=violations,
        interrupted=False,
    )


def test_all_that_arrives_is_placed_and_the_queue_runs_dry(stage: Stage) -> None:
    run = stage.run(ARRIVALS)
    run.wait_for_start()
    played = run.play()

    assert (3, True) == (played.submitted, played.dry)
    assert 3.0 <= played.load_s < 4.0
    assert 12 == played.ledger.schedulers()["totals"]["tasks_placed"]
    assert ["start", "load", "settle"] == list(
        dict.fromkeys(moment.phase for moment in stage.shown)
    )
    assert (3, 3) == (stage.shown[-1].submitted, stage.shown[-1].to_submit)


def test_the_summary_has_the_names_that_scripts_rely_on(stage: Stage) -> None:
    run = stage.run([*ARRIVALS, NEVER_FITS][::-1])
    run.wait_for_start()
    result = result_of(run.play(), stage, [Violation("used", "machine 1", "too much")])
    summary = result.summary()

    assert {
        "tasks_placed": 12,
        "jobs_placed": 3,
        "jobs_parked": {"never_fits": 1},
        "jobs_left": 0,
        "conflict_fraction": 0.0,
        "conflicts": {},
        "claims": 12,
        "rules": {},
        "violations": 1,
    }.items() <= summary.items()
    assert isinstance(summary["tasks_per_second"], float)
    assert isinstance(summary["allocated"], dict)
    assert 0.3 == summary["allocated"]["cpu_milli"]
    (row,) = result.rows()
    assert ("batch", "0", "fit", 0) == tuple(
        row[name] for name in ("scheduler", "replica", "rule", "restarts")
    )
    assert 0.0 == row["conflict_fraction"]


def test_rules_are_told_apart_where_replicas_of_a_kind_differ_in_them(stage: Stage) -> None:
    stage.members.append(DemoReplica("batch", "seq0", ConflictRule.SEQUENCE, stage.child))
    result = result_of(stage.run(ARRIVALS).play(), stage)

    rules = result.summary()["rules"]["batch"]
    assert {"fit": 12, "sequence": 0} == {
        rule: figures["tasks_placed"] for rule, figures in rules.items()
    }
    console = PrintableConsole(width=80)
    with console.capture() as said:
        console.print(result.figures())
    assert "batch by fit       0.00; 0 of 12 claims refused" in said.get()
    assert "batch by sequence  0.00; 0 of 0 claims refused" in said.get()


def test_a_queue_that_does_not_run_dry_is_given_up_on(stage: Stage) -> None:
    run = stage.run(ARRIVALS)
    stage.supervisor.processes = ()
    played = run.play()

    assert (3, False) == (played.submitted, played.dry)
    assert DRAIN_S_MIN < played.load_s < DRAIN_S_MIN + 4
    assert 3 == result_of(played, stage).summary()["jobs_left"]


def test_a_demo_that_is_to_stop_stops(stage: Stage) -> None:
    run = stage.run(ARRIVALS)
    stage.stop.set()
    played = run.play()

    assert 0 == played.submitted
    assert played.load_s < 1.0


def test_without_a_scheduler_left_nothing_is_waited_for(stage: Stage) -> None:
    run = stage.run(ARRIVALS)
    stage.supervisor.processes = ()
    stage.child.state = ChildState.GIVEN_UP

    assert run.play().load_s < 1.0


def test_a_scheduler_that_does_not_come_up_is_told_with_its_last_word(stage: Stage) -> None:
    run = stage.run(ARRIVALS)
    stage.supervisor.processes = ()
    stage.child.state = ChildState.GIVEN_UP
    stage.child.last_end = "ended with code 2"
    stage.child.log.write_text("omega: no such thing\n\n")

    with pytest.raises(OmegaError, match="batch-0 ended with code 2: omega: no such thing"):
        run.wait_for_start()


def test_a_start_that_takes_too_long_is_told(stage: Stage) -> None:
    run = stage.run(ARRIVALS)
    stage.supervisor.processes = ()

    with pytest.raises(OmegaError, match=f"did not come up within {START_S_MAX:g} s"):
        run.wait_for_start()


def test_a_scheduler_that_crashed_is_shown_as_that(stage: Stage) -> None:
    run = stage.run(ARRIVALS)
    run.wait_for_start()
    stage.shown.clear()
    stage.child.state = ChildState.WAITING
    run.play()

    assert {ProcessState.CRASHED} == {line.state for m in stage.shown for line in m.lines}


@pytest.mark.parametrize("name", ["use", "reports", "submit"])
def test_a_store_that_is_away_for_a_while_is_waited_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    run = stage.run(ARRIVALS)
    run.wait_for_start()
    call, calls = getattr(stage.store, name), []

    def cut_off(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) in (2, 3):
            raise StoreUnavailable("terminating connection")
        return call(*arguments)

    monkeypatch.setattr(stage.store, name, cut_off)
    played = run.play()

    assert (3, True) == (played.submitted, played.dry)
    assert 12 == played.ledger.schedulers()["totals"]["tasks_placed"]
    again = f"the store did not answer ({name}), asking again: terminating connection"
    assert ["started", again, again] == stage.events
