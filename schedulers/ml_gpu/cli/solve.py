"""`python -m schedulers.ml_gpu solve`: one allocation problem, one policy.

Goal     Let whoever has an instance see what a policy makes of it, without a cell.
Promise  One seed gives one result, apart from `solve_ms`.
Source   Gavel (OSDI 2020), section 4.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer
from rich.table import Table

from omega.clock import RealClock
from omega.errors import BadInput
from omega.reports.wording import things
from omega.terminal.consoles import Output
from omega.terminal.options import JsonTo, Seed
from omega.terminal.rng import rng_from_seed
from schedulers.ml_gpu.instances import Instance, read_instance
from schedulers.ml_gpu.policies.named import Policy, find_policy
from schedulers.ml_gpu.problem import Allocation, JobPairs, Problem, measures, normalised
from schedulers.ml_gpu.throughputs import PairRates, read_throughputs

PAIRS_SHOWN: Final = 10
TABLE: Final = "simulation_throughputs.json"
"""What is looked for beside an instance, and one folder up, by policies that share GPUs."""


def solve(
    file: Annotated[Path, typer.Argument(metavar="INSTANCE.json", help="Jobs and GPUs.")],
    policy: Annotated[str, typer.Option(metavar="NAME", help="Objective: see `policies`.")],
    throughputs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"Rates of jobs that share GPUs; {TABLE} beside the instance if not given.",
        ),
    ] = None,
    slo_factor: Annotated[
        float,
        typer.Option(min=1, metavar="X", help="Deadlines of an instance without: times the least."),
    ] = 20.0,
    slo_every: Annotated[
        int, typer.Option(min=1, metavar="N", help="Of those: the first of how many jobs has one.")
    ] = 4,
    seed: Seed = 0,
    json_to: JsonTo = None,
) -> None:
    """Divide the GPUs of an instance among its jobs.

    [bold]python -m schedulers.ml_gpu solve n32_single.json --policy max_min_fairness_perf[/]
    """
    output = Output(json_to)
    chosen = find_policy(policy)
    instance = read_instance(file)
    problem = instance.problem(_pairs(instance, throughputs, file) if chosen.shares_gpus else None)
    if chosen.takes_no_gangs and (problem.size > 1).any():
        raise BadInput(f"{policy} has no gangs: jobs of one GPU only", file=str(file))
    if chosen.asks_prices and problem.cost_per_hour is None:
        raise BadInput(f"{policy} asks for prices", file=str(file), field="instance_costs_per_hour")
    if chosen.keeps_deadlines and problem.due_s is None:
        problem = _with_deadlines(problem, slo_factor, slo_every)
    clock = RealClock()
    began = clock.now()
    found = chosen.solve(problem, rng_from_seed(seed))
    solve_ms = (clock.now() - began) * 1_000
    measured = measures(problem, found)
    types = [
        {"type": name, "gpus": int(there), "used": float(used)}
        for name, there, used in zip(problem.types, problem.gpus, found.used, strict=True)
    ]
    output.document(
        parameters={"instance": instance.name or file.stem, "policy": policy, "seed": seed},
        rows=types,
        summary={
            "objective": measured[chosen.measure],
            "measure": chosen.measure,
            "measures": measured,
            "gpus_used": {str(row["type"]): row["used"] for row in types},
            "allocation": found.share.tolist(),
            "shared": _shared(problem, found.together),
            "normalised_throughput": normalised(problem, found.throughput).tolist(),
            "solves": found.solves,
            "solve_ms": round(solve_ms, 3),
        },
    )
    for part in _screen(chosen, problem, found, measured[chosen.measure], solve_ms):
        output.console.print(part)


def _pairs(instance: Instance, given: Path | None, file: Path) -> PairRates:
    """Return the rates of pairs from the table that was given, or that lies near the instance."""
    near = [folder / TABLE for folder in (file.parent, file.absolute().parent.parent)]
    path = given or next((one for one in near if one.is_file()), None)
    if path is None:
        raise BadInput(
            f"there is no {TABLE} beside the instance or one folder up", field="--throughputs"
        )
    return read_throughputs(path).of(instance.worker_types, instance.kinds).pairs


def _shared(problem: Problem, pairs: JobPairs | None) -> list[dict[str, object]]:
    """Return who shares GPUs with whom, on which type, for which fraction of the time."""
    if pairs is None:
        return []
    columns = (pairs.first.tolist(), pairs.second.tolist(), pairs.type.tolist())
    return [
        {"jobs": [first, second], "type": problem.types[type_], "time": time}
        for first, second, type_, time in zip(*columns, pairs.share.tolist(), strict=True)
    ]


def _with_deadlines(problem: Problem, factor: float, every: int) -> Problem:
    """Give the first of every so many jobs a multiple of its time left on its fastest type."""
    due_s = np.full(problem.jobs, np.inf)
    some = slice(None, None, every)
    due_s[some] = factor * problem.remaining_steps[some] / problem.rate[some].max(axis=1)
    return replace(problem, due_s=due_s)


def _screen(
    policy: Policy, problem: Problem, found: Allocation, objective: float, solve_ms: float
) -> Iterator[str | Table]:
    norm = normalised(problem, found.throughput)
    yield f"{policy.name}: {policy.measure} {objective:.6g}, in {solve_ms:.1f} ms"
    yield (
        f"{problem.jobs:,} jobs; rate over that in a slot of the average cluster:"
        f" least {norm.min():.3f}, mean {norm.mean():.3f}"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("type", "GPUs", "used", "jobs with a share"):
        table.add_column(title, justify="left" if title == "type" else "right")
    shared = (found.share > 0).sum(axis=0)
    for name, there, used, jobs in zip(
        problem.types, problem.gpus, found.used, shared, strict=True
    ):
        table.add_row(name, f"{there:,}", f"{used:,.2f}", f"{jobs:,}")
    yield table
    if found.together is not None:
        yield from _pairs_screen(problem, found.together)


def _pairs_screen(problem: Problem, pairs: JobPairs) -> Iterator[str | Table]:
    """Say which two jobs share GPUs, those first that do so for longest."""
    yield f"{things(len(pairs.first), 'pair')} of jobs, counted from 0, share GPUs:"
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("jobs", "type", "time"):
        table.add_column(title, justify="left" if title == "type" else "right")
    longest = np.argsort(-pairs.share, kind="stable")[:PAIRS_SHOWN]
    for at in longest.tolist():
        both = f"{pairs.first[at]:,} and {pairs.second[at]:,}"
        table.add_row(both, problem.types[pairs.type[at]], f"{pairs.share[at]:.1%}")
    if len(longest):
        yield table
    if len(pairs.first) > len(longest):
        yield f"... and {len(pairs.first) - len(longest):,} more; --json has all"
