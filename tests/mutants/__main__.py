"""`make mutants`: plant small faults, one at a time, and see that a test kills each.

Exit code 1 if a mutant is not killed, or if the tests fail without any mutant.
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
from omega.terminal.progress import progress_bar
from tests.architecture.tree import ROOT
from tests.mutants.all_mutants import MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.page import PAGE, page
from tests.mutants.runner import MutantRunner, Result, Status, copied
from tests.mutants.servers import servers

LIMIT_S = 300.0
"""After this time the tests of a mutant are stopped; the slowest file takes half a minute."""
AT_ONCE_MAX = 4
"""Each has a Postgres server of its own; more only wait for disks."""


def main(
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Test this mutant; can be given again.")
    ] = None,
    parallel: Annotated[
        int | None,
        typer.Option(min=1, help="How many at once; by default one a processor."),
    ] = None,
    json_to: JsonTo = None,
) -> None:
    """Plant small faults, one at a time, and see that a test kills each."""
    mutants, output, clock = _chosen(only or []), Output(json_to), RealClock()
    at_once = parallel or min(AT_ONCE_MAX, os.cpu_count() or 1)
    began = clock.now()
    with (
        stop_on_signals() as stop,
        copied(ROOT) as original,
        servers(at_once) as urls,
        ThreadPoolExecutor(len(urls)) as pool,
    ):
        runner = MutantRunner(original, clock, urls, stop=stop, limit_s=LIMIT_S)
        passed = _passes_unmutated(runner, mutants, pool, output, stop)
        results = list(_results(runner, mutants, pool, output, stop)) if passed else []
    if stop.is_set() or not passed:
        raise typer.Exit(1)

    results.sort(key=lambda result: mutants.index(result.mutant))
    counts = Counter(result.status for result in results)
    took_s = round(clock.now() - began, 1)
    if not only:
        (ROOT / PAGE).write_text(page(results), encoding="utf-8")
    output.document(
        parameters={"only": only, "parallel": at_once},
        rows=[_row(result) for result in results],
        summary={**{status: counts[status] for status in Status}, "took_s": took_s},
    )
    output.console.print(f"{counts[Status.KILLED]} of {len(results)} killed in {took_s:.0f} s")
    raise typer.Exit(int(counts[Status.KILLED] < len(results)))


def _chosen(names: Sequence[str]) -> list[Mutant]:
    """Return the mutants of these names, or all of them."""
    known = {mutant.name: mutant for mutant in MUTANTS}
    if unknown := [name for name in names if name not in known]:
        listing = "\n".join(known)
        raise typer.BadParameter(f"there is no mutant {unknown[0]}; there are\n{listing}")
    return [known[name] for name in names] or list(MUTANTS)


def _passes_unmutated(
    runner: MutantRunner,
    mutants: Sequence[Mutant],
    pool: Executor,
    output: Output,
    stop: threading.Event,
) -> bool:
    """Return whether all tests pass without any mutant; print the output of those that do not."""
    wanted = dict.fromkeys(tests for mutant in mutants for tests in mutant.tests)
    runs = {pool.submit(runner.unmutated, [tests]): tests for tests in wanted}
    with progress_bar(output.console) as progress:
        bar = progress.add_task("tests without a mutant", total=len(runs))
        for done in as_completed(runs):
            progress.advance(bar)
            if stop.is_set() or not done.result().passed:
                pool.shutdown(wait=False, cancel_futures=True)
                message = "" if stop.is_set() else f"{done.result().output}\n"
                output.console.print_whole(f"{message}{runs[done]} fails without a mutant")
                return False
    return True


def _results(
    runner: MutantRunner,
    mutants: Sequence[Mutant],
    pool: Executor,
    output: Output,
    stop: threading.Event,
) -> Iterator[Result]:
    """Test mutants, several at once, and yield and print the result of each as it is done."""
    runs = [pool.submit(runner.test, mutant) for mutant in mutants]
    with progress_bar(output.console) as progress:
        bar = progress.add_task("mutants", total=len(runs))
        for done in as_completed(runs):
            if stop.is_set():
                pool.shutdown(wait=False, cancel_futures=True)
                return
            result = done.result()
            progress.advance(bar)
            output.console.print(
                f"{result.status:9} {result.mutant.name:50} {result.took_s:5.1f} s  {result.test}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
            if result.status in (Status.TIMED_OUT, Status.INVALID):
                output.console.print_whole(result.message)
            yield result


def _row(result: Result) -> dict[str, object]:
    """Return a result as a row of the document."""
    mutant = result.mutant
    return {
        "mutant": mutant.name,
        "file": mutant.file,
        "function": mutant.function,
        "before": mutant.before,
        "after": mutant.after,
        "why": mutant.why,
        "status": result.status,
        "killed_by": result.test,
        "message": result.message,
        "took_s": round(result.took_s, 1),
    }


if __name__ == "__main__":
    typer.run(main)
