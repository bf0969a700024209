"""`python -m schedulers.ml_gpu replay`: a trace of training jobs in rounds, in virtual time.

Goal     Let researchers compare policies by what their jobs come to.
Promise  One seed gives one result, apart from `wall_s`.
Source   Gavel (OSDI 2020), sections 5 and 7.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer

from omega.clock import RealClock
from omega.errors import BadInput, did_you_mean, shortened
from omega.model.arrays import Counts
from omega.terminal.consoles import Output
from omega.terminal.dataclass_options import takes
from omega.terminal.options import JsonTo, Seed, number_option
from omega.terminal.progress import progress_bar
from omega.terminal.rng import rng_from_seed
from schedulers.ml_gpu.policies.named import find_policy
from schedulers.ml_gpu.replay import Replay, Replayed, Rules, Trace
from schedulers.ml_gpu.rounds import LeftoverPolicy
from schedulers.ml_gpu.throughputs import Throughputs, read_throughputs
from schedulers.ml_gpu.traces import read_trace

SECONDS_MAX: Final = 1e9
"""Of an option: thirty years."""
ROUNDS_MAX: Final = 10_000_000
"""That one job alone may take."""


def _seconds(about: str, *, least: float = 0) -> Any:  # noqa: ANN401 - typer's own type has no name
    return number_option(lowest=least, highest=SECONDS_MAX, metavar="S", help=about)


@dataclass(frozen=True, kw_only=True)
class ReplayPlan:
    """A replay as it was asked for; a field is an option."""

    file: Annotated[Path, typer.Argument(metavar="TRACE", help="Jobs: .trace, or .csv.")]
    policy: Annotated[str, typer.Option(metavar="NAME", help="Objective: see `policies`.")]
    throughputs: Annotated[Path, typer.Option(metavar="FILE", help="Rates of all kinds of jobs.")]
    gpus: Annotated[
        str, typer.Option(metavar="TYPE=N,...", help="GPUs of each type, such as v100=8,k80=24.")
    ]
    round_s: Annotated[float, _seconds("How long a round lasts.", least=1)] = 360.0
    reset_s: Annotated[float, _seconds("Least time between allocations.")] = 1_920.0
    restart_s: Annotated[float, _seconds("Lost when a job's GPUs change.")] = 0.0
    keep_gpus: Annotated[
        bool, typer.Option(help="Whether a job that goes on keeps its GPUs if it can.")
    ] = True
    fast_first: Annotated[
        bool, typer.Option("--fast-first", help="Agnostic policies serve fast types first, too.")
    ] = False
    leftovers: Annotated[
        LeftoverPolicy,
        typer.Option(help="When jobs without a share of a type may have what is left of it."),
    ] = LeftoverPolicy.AS_MET
    run_at_once: Annotated[
        bool, typer.Option("--run-at-once", help="Jobs without a share run in what is left over.")
    ] = False
    seed: Seed = 0

    def prepared(self, advance: Callable[[int], None]) -> Replay:
        """Return the run, not yet played; raise BadInput if it cannot be."""
        if self.restart_s >= self.round_s:
            raise BadInput("a restart takes as long as a round", field="--restart-s")
        policy = find_policy(self.policy)
        if policy.keeps_deadlines or policy.asks_prices:
            raise BadInput(f"{self.policy} asks for what traces do not say", field="--policy")
        counts = _counts(self.gpus)
        table = read_throughputs(self.throughputs)
        for name in sorted(counts.keys() - set(table.types)):
            raise BadInput(
                f"no rates are known on {shortened(repr(name))}{did_you_mean(name, table.types)}",
                field="--gpus",
            )
        table = table.of(sorted(counts), table.kinds)
        trace = read_trace(self.file, table)
        gpus = np.array([counts[name] for name in table.types], np.int64)
        _refuse_what_cannot_run(trace, table, gpus)
        _refuse_what_takes_forever(trace, table, self.round_s)
        if policy.takes_no_gangs and (table.gangs[trace.row] > 1).any():
            raise BadInput(f"{self.policy} has no gangs: jobs of one GPU only", field="--policy")
        rules = Rules(
            round_s=self.round_s,
            reset_s=self.reset_s,
            restart_s=self.restart_s,
            keeps_gpus=self.keep_gpus,
            shuffles_types=False if self.fast_first else None,
            leftovers=self.leftovers,
            reserves_idle=not self.run_at_once,
        )
        return Replay(
            trace=trace,
            table=table,
            gpus=gpus,
            policy=policy,
            rng=rng_from_seed(self.seed),
            rules=rules,
            advance=advance,
        )


@takes(ReplayPlan)
def replay(plan: ReplayPlan, json_to: JsonTo = None) -> None:
    """Play a trace in rounds and say how its jobs fared.

    [bold]python -m schedulers.ml_gpu replay jobs.csv --policy max_min_fairness_perf
    --throughputs rates.json --gpus v100=8,k80=24[/]
    """
    output = Output(json_to)
    clock = RealClock()
    began = clock.now()
    with progress_bar(output.console) as progress:
        bar = progress.add_task("jobs", total=None)
        run = plan.prepared(lambda more: progress.update(bar, advance=more))
        progress.update(bar, total=len(run.trace))
        played = run.run()
    summary = summary_of(played)
    parameters = {
        name: value.name if isinstance(value, Path) else value
        for name, value in asdict(plan).items()
    }
    output.document(
        parameters=parameters,
        rows=[
            {"job": job, "completion_s": round(float(value), 3)}
            for job, value in enumerate(played.completion_s)
        ],
        summary={**summary, "wall_s": round(clock.now() - began, 3)},
    )
    output.console.print(
        f"{plan.policy}: mean completion {summary['avg_jct_s']:,.0f} s, makespan"
        f" {summary['makespan_s']:,.0f} s, utilisation {summary['utilisation']:.1%}"
    )
    output.console.print(
        f"{len(run.trace):,} jobs in {summary['rounds']:,} rounds; {summary['preemptions']:,}"
        f" preemptions, {summary['lease_extension_pct']:.1f} % kept their GPUs where they went on"
    )


def summary_of(run: Replayed) -> dict[str, float]:
    """Return the figures by which runs are compared."""
    tally = run.tally
    return {
        "avg_jct_s": round(float(run.completion_s.mean()), 3),
        "p99_jct_s": round(float(np.percentile(run.completion_s, 99)), 3),
        "makespan_s": round(run.makespan_s, 3),
        "utilisation": round(run.utilisation, 6),
        "lease_extension_pct": round(100 * tally.extended / max(1, tally.could_go_on), 2),
        "preemptions": tally.preempted,
        "dispatches": tally.dispatches,
        "rounds": tally.rounds,
        "solves": tally.solves,
    }


def _counts(said: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for part in said.split(","):
        name, _, number = part.partition("=")
        if not name or not number.isdecimal() or name in counts or len(number) > len("1000000"):
            raise BadInput(f"{part!r} is not TYPE=N, each type once", field="--gpus")
        counts[name] = int(number)
    if not any(counts.values()):
        raise BadInput("there is no GPU at all", field="--gpus")
    return counts


def _refuse_what_cannot_run(trace: Trace, table: Throughputs, gpus: Counts) -> None:
    """Raise BadInput for the first job that no round could ever give GPUs to."""
    fits = (table.rates > 0) & (gpus >= table.gangs[:, np.newaxis])
    lost = trace.row[~np.asarray(fits.any(axis=1))[trace.row]]
    if len(lost):
        model, gang = table.kinds[lost[0]]
        raise BadInput(f"no type has room for a gang of {gang} of {model}", field="--gpus")


def _refuse_what_takes_forever(trace: Trace, table: Throughputs, round_s: float) -> None:
    """Raise BadInput for a job that would take more rounds than anybody would wait for."""
    rounds = trace.steps / (table.rates[trace.row].max(axis=1) * round_s)
    job = int(np.argmax(rounds))
    if rounds[job] > ROUNDS_MAX:
        model, _ = table.kinds[trace.row[job]]
        raise BadInput(
            f"{trace.steps[job]:,} steps of {shortened(model)} take {rounds[job]:,.0f} rounds;"
            f" {ROUNDS_MAX:,} are the most",
            field="--round-s",
        )
