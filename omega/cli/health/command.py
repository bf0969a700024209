"""`omega health`: whether one process of this machine is ready.

Goal     The health check of a container, and the probe of a service manager.
Promise  The verb only reads, with the login of the process itself. It ends within its timeout once
         it asks the database: exit code 0 and a line, or exit code 1 and a sentence.
Source   omega.reports.health; ProcessRegistry.own_report.
"""

import socket
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Annotated, Final

import psutil
import typer

from omega.cli.cell_access import cell_settings
from omega.cli.options import process_name
from omega.config import DAY_MS, Settings
from omega.errors import BadInput, OmegaError, did_you_mean, shortened
from omega.framework.kinds import registered
from omega.reports.health import HealthLimits, problem_with, ready_line, view_age_ms
from omega.reports.processes import AGENT, NOT_SCHEDULERS, SILENT_AFTER_MS, name_of
from omega.store.opening import store_at
from omega.store.postgres.health.copies import read_hosts, split_brain
from omega.store.status import ProcessReport
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo, number_option

TIMEOUT_S_MAX: Final = 3_600.0


def command(
    kind: Annotated[
        str, typer.Argument(help="A kind of scheduler, [bold]nodes[/] or [bold]agent[/].")
    ],
    replica: Annotated[
        str | None,
        typer.Option(
            callback=lambda name: name if name is None else process_name(name),
            metavar="NAME",
            help="Which one; an agent has its machine's name. 0 if not given, the host's name for"
            " an agent.",
        ),
    ] = None,
    within: Annotated[
        int,
        typer.Option(
            min=1,
            max=DAY_MS,
            metavar="MS",
            help="How long ago it may have reported. Schedulers report between decisions.",
        ),
    ] = SILENT_AFTER_MS,
    timeout: Annotated[
        float,
        number_option(
            lowest=0.001,
            highest=TIMEOUT_S_MAX,
            metavar="S",
            help="How long to wait for the database.",
        ),
    ] = 5.0,
    data_dir: DataDir = None,
    json_to: JsonTo = None,
) -> None:
    """Say whether one process of this machine is ready.

    It is if it runs, is connected and reports, and a scheduler's view is fresh. Of several hosts in
    the URL, no two may take writes. Run this with the database URL of the process. Exit code 0 if
    it is ready, else 1.

    For example [bold]omega health batch --replica 1[/] or [bold]omega health nodes[/]
    """
    _refuse_unknown(kind)
    output = Output(json_to)
    named = replica or (socket.gethostname() if kind == AGENT else "0")
    with cell_settings(data_dir) as (settings, url):
        # A scheduler without jobs reads the cell once in each interval of rescues.
        limits = HealthLimits(report_ms=within, view_ms=within + settings.rescue_interval_ms)
        answer = _own_report(url, settings, kind, named, timeout)
    report = None if isinstance(answer, str) else answer
    problem = answer if isinstance(answer, str) else problem_with(answer, limits, psutil.pid_exists)
    output.document(
        parameters={"kind": kind, "replica": named, "within_ms": within, "timeout_s": timeout},
        rows=[] if report is None else [{**vars(report), "view_age_ms": view_age_ms(report)}],
        summary={"ready": problem is None, "problem": problem},
    )
    if problem is not None:
        raise OmegaError(problem)
    assert report is not None, "without a report there is a problem"
    output.console.print(ready_line(report), highlight=False)


def _refuse_unknown(kind: str) -> None:
    known = sorted({*NOT_SCHEDULERS, *(each.kind for each in registered())})
    if kind not in known:
        raise BadInput(
            f"{shortened(kind)!r} is no kind of process{did_you_mean(kind, known)}"
            f" (there are: {', '.join(known)})"
        )


def _own_report(
    url: str, settings: Settings, kind: str, replica: str, timeout_s: float
) -> ProcessReport | str:
    """Return the report, or the reason why there is none, in words."""
    answers: SimpleQueue[ProcessReport | Exception | str | None] = SimpleQueue()

    def ask() -> None:
        store = store_at(url, settings, "omega health")
        try:
            answers.put(split_brain(read_hosts(url)) or store.own_report(kind, replica))
        except Exception as error:  # given to who waits for the answer
            answers.put(error)
        finally:
            store.close()

    # A daemon thread: one that still waits for the database ends with this process.
    Thread(target=ask, name="health", daemon=True).start()
    try:
        answer = answers.get(timeout=timeout_s)
    except Empty:
        return f"the database did not answer within {timeout_s:g} s"
    if answer is None:
        return f"no process reports as {name_of(kind, replica)} with this login"
    if isinstance(answer, OmegaError):
        return str(answer)
    if isinstance(answer, Exception):
        raise answer
    return answer
