"""`make mutants`: plant small faults, one at a time, and see that a test notices each.

Exit code 1 when one got away, or when the tests fail without any.
"""

import os
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from typing import Annotated

import typer

from omega.clock import RealClock
from omega.processes.stopping import stop_on_signals
from omega.terminal.consoles import Output
from omega.terminal.options import JsonTo
from tests.architecture.tree import ROOT
from tests.mutants.everywhere import MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.page import PAGE, page
from tests.mutants.servers import servers
from tests.mutants.trial import Court, Disposition, Trial, copied

LIMIT_S = 300.0
"""Tests that take longer hang: the slowest file takes half a minute."""
AT_ONCE_MAX = 4
"""Each has a server of its own; more only wait for disks."""


def main(
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Try this one; can be said again.")
    ] = None,
    parallel: Annotated[
        int | None, typer.Option(min=1, help="How many at once; one a processor if not given.")
    ] = None,
    json_to: JsonTo = None,
) -> None:
    """Plant small faults, one at a time, and see that a test notices each."""
    mutants, output, clock = _chosen(only or []), Output(json_to), RealClock()
    at_once = parallel or min(AT_ONCE_MAX, os.cpu_count() or 1)
    began = clock.now()
    with (
        stop_on_signals() as stop,
        copied(ROOT) as sound,
        servers(at_once) as urls,
        ThreadPoolExecutor(len(urls)) as pool,
    ):
        court = Court(sound, clock, urls, stop=stop, limit_s=LIMIT_S)
        sane = _is_sound(court, mutants, pool, output, stop)
        trials = list(_tried(court, mutants, pool, output, stop)) if sane else []
    if stop.is_set() or not sane:
        raise typer.Exit(1)

    trials.sort(key=lambda trial: mutants.index(trial.mutant))
    dispositions = Counter(trial.fate for trial in trials)
    took_s = round(clock.now() - began, 1)
    if not only:
        (ROOT / PAGE).write_text(page(trials), encoding="utf-8")
    output.document(
        parameters={"only": only, "parallel": at_once},
        rows=[_row(trial) for trial in trials],
        summary={**{fate: dispositions[fate] for fate in Disposition}, "took_s": took_s},
    )
    output.console.print(
        f"{dispositions[Disposition.CAUGHT]} of {len(trials)} caught in {took_s:.0f} s"
    )
    raise typer.Exit(int(dispositions[Disposition.CAUGHT] < len(trials)))


def _chosen(names: Sequence[str]) -> list[Mutant]:
    """Return the mutants of these names, or all of them."""
    known = {mutant.name: mutant for mutant in MUTANTS}
    if unknown := [name for name in names if name not in known]:
        listing = "\n".join(known)
        raise typer.BadParameter(f"there is no mutant {unknown[0]}; there are\n{listing}")
    return [known[name] for name in names] or list(MUTANTS)


def _is_sound(
    court: Court,
    mutants: Sequence[Mutant],
    pool: Executor,
    output: Output,
    stop: threading.Event,
) -> bool:
    """Say whether all tests pass without any mutant; show what those say that do not."""
    wanted = dict.fromkeys(tests for mutant in mutants for tests in mutant.tests)
    runs = {pool.submit(court.unmutated, [tests]): tests for tests in wanted}
    with output.progress() as progress:
        bar = progress.add_task("tests without a mutant", total=len(runs))
        for done in as_completed(runs):
            progress.advance(bar)
            if stop.is_set() or not done.result().passed:
                pool.shutdown(wait=False, cancel_futures=True)
                said = "" if stop.is_set() else f"{done.result().output}\n"
                output.console.print_whole(f"{said}{runs[done]} fails without a mutant")
                return False
    return True


def _tried(
    court: Court,
    mutants: Sequence[Mutant],
    pool: Executor,
    output: Output,
    stop: threading.Event,
) -> Iterator[Trial]:
    """Try mutants, several at once, and tell of each as it is done."""
    trials = [pool.submit(court.trial, mutant) for mutant in mutants]
    with output.progress() as progress:
        bar = progress.add_task("mutants", total=len(trials))
        for done in as_completed(trials):
            if stop.is_set():
                pool.shutdown(wait=False, cancel_futures=True)
                return
            trial = done.result()
            progress.advance(bar)
            output.console.print(
                f"{trial.fate:9} {trial.mutant.name:50} {trial.took_s:5.1f} s  {trial.by}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
            if trial.fate in (Disposition.HUNG, Disposition.STILLBORN):
                output.console.print_whole(trial.said)
            yield trial


def _row(trial: Trial) -> dict[str, object]:
    """Return a trial as a row of the document."""
    mutant = trial.mutant
    return {
        "mutant": mutant.name,
        "file": mutant.file,
        "before": mutant.before,
        "after": mutant.after,
        "why": mutant.why,
        "fate": trial.fate,
        "by": trial.by,
        "said": trial.said,
        "took_s": round(trial.took_s, 1),
    }


if __name__ == "__main__":
    typer.run(main)
