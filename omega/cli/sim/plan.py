"""The plan of a simulation: its jobs, its cell, its schedulers.

Goal     Describe a run in one value, declared once: its fields are the options of `omega sim run`,
         and each of them can be varied by `omega sim sweep`.
Promise  A plan that cannot be simulated is BadInput before anything is simulated.
Source   omega.sim.experiment; the job lists and traces of omega.workload.traces.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from omega.cli.options import (
    DECISION_S_MAX,
    SCHEDULERS_MAX,
    Gap,
    PartsOf,
    SyncBy,
    TraceOptions,
    read_trace_options,
    refuse_undivided_parts,
    refuse_uneven_parts,
)
from omega.cli.sim.failures import refuse_events_with_offers, with_failures
from omega.cli.sim.placing import makers, read_placing
from omega.cli.sim.precedences import MIX_SHOWN, read_mixes, refuse_evictions, with_precedences
from omega.errors import BadInput
from omega.framework.scheduler import DecisionTime, Scheduler
from omega.limits import LIMITS
from omega.model.claims import ConflictRule
from omega.model.jobs import PRECEDENCE_GAP, PRECEDENCE_GAP_MAX
from omega.sim.commit_unit import CommitUnit, committing
from omega.sim.compilation import FROM_JOBS, is_worth_compiling, refuse_uncompilable
from omega.sim.division import Division
from omega.sim.experiment import Advance, Architecture, Assignment, Experiment, Run
from omega.sim.live_run import LiveRun, SyncConfig
from omega.sim.results import S_PER_H
from omega.sim.runs import Queueing, begin
from omega.sync.choice import Sync
from omega.terminal.options import Seed, number_option
from omega.terminal.rng import rng_from_seed
from omega.workload.arrivals import MS_PER_S, Arrival, Workload
from omega.workload.machine_events import Failures
from omega.workload.sources import read_trace
from omega.workload.traces.omega_sim import CPUS_MAX, GB_MAX, read_job_list, uniform_workload

PLACING: Final = "batch"
"""The kind that places all jobs of a list: randomised first fit, as in the paper's simulator."""
OF_UNIFORM_CELLS: Final = ("machines", "cpus", "memory_gib", "prefill_tasks")
"""Options that describe what a trace brings itself: machines and start state."""
SEED_OF_TRACES: Final = 0
"""Every run reads a trace with this seed, so that runs with different seeds have the same jobs."""
HOURS_MAX: Final = 24 * 366
MACHINES_MAX: Final = 1_000_000
PREFILL_MAX: Final = 10_000_000
"""Tasks; so many take some gigabytes of memory."""
CENTURY_S: Final = LIMITS.duration_ms_max / MS_PER_S
GAP_S: Final = 1.0


Given = tuple[Arrival, ...] | Workload
"""The jobs of a list, or the whole workload of a trace."""


def _seconds(help_: str) -> Any:  # noqa: ANN401 - typer's own
    return number_option(lowest=0, highest=DECISION_S_MAX, metavar="S", help=help_)


def _schedulers() -> Any:  # noqa: ANN401 - likewise
    return typer.Option(min=1, max=SCHEDULERS_MAX, metavar="N")


@dataclass(frozen=True, kw_only=True)
class SimPlan:
    """A simulation as it was asked for; a field is an option."""

    jobs: Annotated[
        Path | None, typer.Option("--jobs", metavar="FILE", help="Job list: .csv, also gzipped.")
    ] = None
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="DIR",
            help="Instead: a published trace's folder, with its machines and what runs on them.",
        ),
    ] = None
    trace_option: TraceOptions = None
    machines: Annotated[int, typer.Option(min=1, max=MACHINES_MAX, metavar="N")] = 1_000
    cpus: Annotated[
        float,
        number_option(lowest=0.001, highest=CPUS_MAX, metavar="N", help="Cores of a machine."),
    ] = 4
    memory_gib: Annotated[float, number_option(lowest=0.001, highest=GB_MAX, metavar="N")] = 16
    prefill_tasks: Annotated[
        int,
        typer.Option(
            min=0,
            max=PREFILL_MAX,
            metavar="N",
            help="Tasks of 1 core and 2 GiB, there all the time.",
        ),
    ] = 2_400
    hours: Annotated[float, number_option(lowest=0.001, highest=HOURS_MAX, metavar="H")] = 6
    architecture: Annotated[
        Architecture, typer.Option(help="Who takes which jobs, and what they see.")
    ] = Architecture.SHARED_STATE
    rule: Annotated[ConflictRule, typer.Option(help="When a claim conflicts.")] = ConflictRule.FIT
    granularity: Annotated[
        CommitUnit, typer.Option(help="What a refused claim does to its siblings.")
    ] = CommitUnit.INCREMENTAL
    batch_schedulers: Annotated[int, _schedulers()] = 1
    service_schedulers: Annotated[int, _schedulers()] = 1
    t_job_batch: Annotated[float, _seconds("Decision time of a batch job.")] = 0.1
    t_task_batch: Annotated[float, _seconds("And for each of its tasks.")] = 0.005
    t_job_service: Annotated[float, _seconds("Of a service job; monolithic: of all.")] = 10.0
    t_task_service: Annotated[float, _seconds("And for each of its tasks.")] = 0.005
    batch_share: Annotated[
        float,
        number_option(
            lowest=0.01,
            highest=0.99,
            metavar="X",
            help="Of a static partition: batch jobs' share of the machines.",
        ),
    ] = 0.5
    assignment: Annotated[
        Assignment, typer.Option(help="Which of several schedulers takes a job.")
    ] = Assignment.DEALT
    machine_failures_every: Annotated[
        float | None,
        number_option(
            lowest=0.001,
            highest=CENTURY_S / S_PER_H,
            metavar="H",
            help="Mean time that a machine is up; none fails if not given.",
        ),
    ] = None
    machine_repair: Annotated[
        float,
        number_option(
            lowest=0.001, highest=CENTURY_S, metavar="S", help="Mean time until it is back."
        ),
    ] = 600.0
    queue: Annotated[
        Queueing,
        typer.Option(
            help="How jobs wait: as in the paper's open simulator, which does not preempt, or live."
        ),
    ] = Queueing.OPEN
    placing: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="Kind of scheduler that places the jobs, or batch=KIND+service=KIND. If not given,"
            " jobs of a list are placed by batch, those of a trace each by their own kind.",
        ),
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="[WORKLOAD:]NAME=VALUE",
            help="A setting of the schedulers' own; may be given again.",
        ),
    ] = None
    precedence_mix: Annotated[
        str | None,
        typer.Option(
            metavar="MIX",
            help="Precedences drawn for the jobs of a workload, and their weights, with --queue"
            f" live: {MIX_SHOWN}. If not given, jobs have their own; those of a list have 0.",
        ),
    ] = None
    precedence_gap: Annotated[
        int,
        typer.Option(
            min=1,
            max=PRECEDENCE_GAP_MAX,
            metavar="N",
            help="With --queue live: by how much a job's precedence must be higher for it to evict"
            " another's tasks.",
        ),
    ] = PRECEDENCE_GAP
    requeue_start: Annotated[
        bool,
        typer.Option(
            "--requeue-start",
            help="With --queue live: tasks that run at the start of a trace and lose their places"
            " queue again. If not given, they are gone.",
        ),
    ] = False
    sync: SyncBy = Sync.DELTA
    gap: Gap = GAP_S
    parts: PartsOf = None
    seed: Seed = 0
    compiled: Annotated[
        bool | None,
        typer.Option(
            "--compiled/--no-compiled",
            help="Place plain jobs in compiled loops: faster, with the same result. The default"
            f" from {FROM_JOBS:,} jobs on, if omega-scheduler\\[fast] is installed.",
        ),
    ] = None
    audit: Annotated[
        bool, typer.Option("--audit", help="Keep a shadow state of the cell, and compare.")
    ] = False

    def parameters(self) -> dict[str, object]:
        """Return the options as JSON types; of files and folders only their names.

        `compiled` is left out, because it changes no figure.
        """
        return {name: as_json(value) for name, value in vars(self).items() if name != "compiled"}

    @property
    def source(self) -> Path:
        """The path of the job list or trace. Raises BadInput if options contradict each other."""
        if self.trace is None:
            if self.jobs is None:
                raise BadInput("name a job list, or a trace's folder by --trace", field="--jobs")
            if self.trace_option:
                raise BadInput("a job list has no such options", field="--trace-option")
            return self.jobs
        if self.jobs is not None:
            raise BadInput("there is a job list already; name one of the two", field="--trace")
        defaults = {field.name: field.default for field in fields(self)}
        for name in OF_UNIFORM_CELLS:
            if getattr(self, name) != defaults[name]:
                option = "--" + name.replace("_", "-")
                raise BadInput("a trace brings machines and start state itself", field=option)
        return self.trace

    def read(self) -> Given:
        """Read the job list, or the whole trace, which is the same for every seed.

        Raises BadInput for a malformed file.
        """
        source = self.source
        if self.trace is None:
            return read_job_list(source)
        return read_trace(
            source, rng_from_seed(SEED_OF_TRACES), read_trace_options(self.trace_option or [])
        )

    def experiment(self, given: Given) -> Experiment:
        """Return the experiment on these jobs.

        Raises BadInput if there is no job, or for options that cannot be combined, and
        SettingsError for an extra that is not installed.
        """
        if not (given.arrivals if isinstance(given, Workload) else given):
            raise BadInput("there is no job to simulate", file=str(self.source))
        if isinstance(given, Workload):
            workload = given
        else:
            uniform = uniform_workload(
                given,
                machines=self.machines,
                cpus=self.cpus,
                memory_gib=self.memory_gib,
                prefill_tasks=self.prefill_tasks,
                rng=rng_from_seed(self.seed),
            )
            workload = replace(uniform, prefill=uniform.prefill.not_preemptible())
        workload = self._with_failures(workload)
        kinds = kinds_of(given)
        mixes = read_mixes(self.precedence_mix, kinds)
        workload = replace(workload, arrivals=with_precedences(workload.arrivals, mixes, self.seed))
        make = self.schedulers(kinds)
        return Experiment(
            workload=workload,
            architecture=self.architecture,
            scheduler=make,
            decision_times=self._division.decision_times(kinds, self.architecture),
            schedulers=self._division.schedulers(kinds),
            parts=self._division.parts(kinds),
            assignment=self.assignment,
            gangs=self.granularity is CommitUnit.GANG,
            precedence_gap=self.precedence_gap,
            start_queues_again=self.requeue_start,
            horizon_s=self.hours * S_PER_H,
            seed=self.seed,
            audited=self.audit,
            compiled=self._is_compiled(workload),
        )

    def _is_compiled(self, workload: Workload) -> bool:
        """Return whether to compile. Raises BadInput or SettingsError if it is impossible."""
        if self.compiled is None:
            return is_worth_compiling(
                len(workload.arrivals),
                audit=self.audit,
                live=self.queue is Queueing.LIVE,
                machines_change=bool(workload.machine_events),
            )
        self._refuse_uncompilable(machines_change=bool(workload.machine_events))
        return self.compiled

    def _refuse_uncompilable(self, *, machines_change: bool) -> None:
        if self.compiled:
            live = self.queue is Queueing.LIVE
            refuse_uncompilable(audit=self.audit, live=live, machines_change=machines_change)

    def schedulers(self, kinds: Sequence[str]) -> Callable[[str], Scheduler]:
        """Return the function that creates the scheduler of a kind of job.

        Raises BadInput, SettingsError or UnknownScheduler for schedulers that the plan cannot use.
        """
        placing = dict.fromkeys(kinds, PLACING) if self.trace is None else {}
        placing |= read_placing(self.placing, kinds)
        made = makers(placing, kinds, self.settings or [])
        read_mixes(self.precedence_mix, kinds)  # raises now, not in a worker of a sweep
        each = {kind: committing(made[kind], self.rule, self.granularity) for kind in kinds}

        def make(kind: str) -> Scheduler:
            return each[kind]()

        self._refuse_what_does_not_wait_so({kind: make(kind) for kind in kinds})
        self._refuse_uncompilable(machines_change=self.machine_failures_every is not None)
        return make

    def _with_failures(self, workload: Workload) -> Workload:
        """Return the workload with the failures asked for; refuse events that are not simulated."""
        horizon_s = self.hours * S_PER_H
        if self.machine_failures_every is not None:
            failures = Failures(
                every_s=self.machine_failures_every * S_PER_H, repair_s=self.machine_repair
            )
            workload = with_failures(workload, failures, horizon_s=horizon_s, seed=self.seed)
        if self.architecture is Architecture.TWO_LEVEL:
            refuse_events_with_offers(workload, horizon_s)
        return workload

    def begin(self, given: Given, advance: Advance = lambda _: None) -> Run | LiveRun:
        """Return the simulation, ready to run. Raises the errors of `experiment`."""
        sync = SyncConfig(by=self.sync, gap_s=self.gap, parts=self.parts or 0)
        return begin(self.experiment(given), self.queue, sync, advance)

    def _refuse_what_does_not_wait_so(self, schedulers: Mapping[str, Scheduler]) -> None:
        """Raise BadInput for options that need the other kind of queue."""
        self._refuse_useless_parts(schedulers)
        if self.queue is Queueing.OPEN:
            refuse_evictions(
                mix=self.precedence_mix,
                gap=self.precedence_gap,
                requeue_start=self.requeue_start,
                settings=self.settings or (),
            )
            if self.sync is not Sync.DELTA:
                raise BadInput("other ways to synchronise need --queue live", field="--sync")
            for name, scheduler in schedulers.items():
                if scheduler.rounds is not None:
                    raise BadInput(
                        f"{name} plans by rounds, which need --queue live", field="--set"
                    )
            return
        if self.architecture is not Architecture.SHARED_STATE:
            raise BadInput("jobs wait as live where state is shared", field="--architecture")
        if self.assignment is not Assignment.DEALT:
            raise BadInput("live, replicas of a kind take from one queue", field="--assignment")
        if self.audit:
            raise BadInput("with --queue live every run is checked at its end", field="--audit")

    def _refuse_useless_parts(self, workloads: Collection[str]) -> None:
        """Raise BadInput for parts or a gap without partitions, and for an uneven division."""
        if self.sync is not Sync.PARTITIONED:
            if self.gap != GAP_S:
                raise BadInput("only --sync partitioned has a gap", field="--gap")
            refuse_undivided_parts(self.sync, self.parts)
            return
        replicas = sum(self._division.replicas(name) for name in workloads)
        refuse_uneven_parts(self.parts, replicas)

    @property
    def _division(self) -> Division:
        return Division(
            batch=DecisionTime(job_s=self.t_job_batch, task_s=self.t_task_batch),
            service=DecisionTime(job_s=self.t_job_service, task_s=self.t_task_service),
            batch_schedulers=self.batch_schedulers,
            service_schedulers=self.service_schedulers,
            batch_share=self.batch_share,
        )


def kinds_of(given: Given) -> list[str]:
    """Return the kinds of schedulers that the jobs ask for, in order of name."""
    arrivals = given.arrivals if isinstance(given, Workload) else given
    return sorted({arrival.spec.scheduler for arrival in arrivals})


def as_json(value: object) -> object:
    """Return a value of a plan as a JSON type; of a file or folder only its name."""
    if isinstance(value, Enum):
        return value.value
    return value.resolve().name if isinstance(value, Path) else value
