"""`make mutants`: plant small faults, one at a time, and see that a test kills each.

A mutant that is on the page is first tried with the test that killed it last, and with all of its
tests only if that passes. A test that fails without a mutant kills none. Exit code 1 if a mutant is
not killed, or if such a test, or any test of a mutant that is not on the page, fails without any.
"""

import os
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from dataclasses import replace
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
from tests.mutants.page import PAGE, killers, page, test_of
from tests.mutants.runner import COPIED, MutantRunner, Result, Selection, Status, copied
from tests.mutants.servers import servers

LIMIT_S = 300.0
"""After this time for each of their files, tests are stopped; the slowest takes half a minute."""
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
        first = _last_killers(mutants)
        before = _before(mutants, first, len(urls))
        passed = _passes_unmutated(runner, before, pool, output, stop)
        results = list(_results(runner, mutants, first, pool, output, stop)) if passed else []
        results = [_checked(runner, result, first) for result in results if not stop.is_set()]
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


def _last_killers(mutants: Sequence[Mutant]) -> dict[str, Selection]:
    """Return the test that killed each mutant last, if it is still there, by the mutant's name."""
    path = ROOT / PAGE
    known = killers(path.read_text(encoding="utf-8")) if path.exists() else {}
    written = _test_names()
    tests = ((mutant.name, known.get(mutant.name)) for mutant in mutants)
    return {
        name: Selection((test[0],), (test[1],))
        for name, test in tests
        if test is not None and (ROOT / test[0]).exists() and test[1] in written
    }


def _test_names() -> set[str]:
    """Return the names of all tests; files may inherit them from others."""
    files = (path for folder in COPIED for path in (ROOT / folder).rglob("*.py"))
    texts = (path.read_text(encoding="utf-8") for path in files)
    of_machines = {"runTest"}  # hypothesis gives it to each state machine
    return of_machines.union(*(re.findall(r"def (test_\w+)", text) for text in texts))


def _before(
    mutants: Sequence[Mutant], first: Mapping[str, Selection], groups: int
) -> list[Selection]:
    """Return what has to pass without a mutant: last killers in so many groups, and whole files.

    A process that runs tests takes seconds to begin, so a group is run by one.
    """
    names: dict[str, set[str]] = {}
    for tests in first.values():
        names.setdefault(tests.paths[0], set()).update(tests.names)
    files = sorted(names)
    shares = [files[at::groups] for at in range(min(groups, len(files)))]
    known = [
        Selection(tuple(share), tuple(sorted(set().union(*(names[file] for file in share)))))
        for share in shares
    ]
    new = (mutant for mutant in mutants if mutant.name not in first)
    wanted = dict.fromkeys(tests for mutant in new for tests in mutant.tests)
    return [*known, *(Selection((tests,)) for tests in wanted)]


def _checked(runner: MutantRunner, result: Result, first: Mapping[str, Selection]) -> Result:
    """Return a result; invalid if it was killed by a test that fails without the mutant too."""
    tests = first.get(result.mutant.name)
    if result.status is not Status.KILLED or tests is None:
        return result
    file, _, name = test_of(result).partition("::")
    killer = Selection((file,), (name,))
    if killer == tests or runner.unmutated(killer).passed:
        return result
    return replace(
        result, status=Status.INVALID, message=f"fails without a mutant too: {result.message}"
    )


def _passes_unmutated(
    runner: MutantRunner,
    selections: Sequence[Selection],
    pool: Executor,
    output: Output,
    stop: threading.Event,
) -> bool:
    """Return whether tests pass without any mutant; print the output of those that do not."""
    runs = {pool.submit(runner.unmutated, tests): tests for tests in selections}
    with progress_bar(output.console) as progress:
        bar = progress.add_task("tests without a mutant", total=len(runs))
        for done in as_completed(runs):
            progress.advance(bar)
            if stop.is_set() or not done.result().passed:
                pool.shutdown(wait=False, cancel_futures=True)
                message = "" if stop.is_set() else f"{done.result().output}\n"
                failure = None if stop.is_set() else done.result().failure
                which = failure.test if failure else " ".join(runs[done].paths)
                output.console.print_whole(f"{message}{which} fails without a mutant")
                return False
    return True


def _results(
    runner: MutantRunner,
    mutants: Sequence[Mutant],
    first: Mapping[str, Selection],
    pool: Executor,
    output: Output,
    stop: threading.Event,
) -> Iterator[Result]:
    """Test mutants, several at once, and yield and print the result of each as it is done."""
    runs = [pool.submit(runner.test, mutant, first.get(mutant.name)) for mutant in mutants]
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
