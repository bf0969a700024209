"""`omega audit`: who holds more than a policy allows that no commit can judge.

Goal     Report shares of the cell over time and idle room, and fail if a policy is exceeded.
Promise  The verb only reads. It exits 1 when something is above the policy, 2 for a policy or a
         window that cannot be read, before the cell is looked at.
Source   Omega (EuroSys 2013), section 3.4; docs/decisions/0041-audits.md.
"""

from pathlib import Path
from typing import Annotated

import typer

from omega.cli.audit.screens import audit_screen
from omega.cli.cell_access import DemoOption, ReadFrom, cell_reader
from omega.config import DAY_MS
from omega.errors import BadInput
from omega.reports.audit import AuditReport
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo
from omega.workload.audit_policy import NO_POLICY, read_policy, window_ms


def command(
    policy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What each may hold, in YAML; none: shares only."),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="The last 24h, 30m: the time that is looked at. If not given, the policy's, or"
            " 24h.",
        ),
    ] = None,
    data_dir: DataDir = None,
    read_from: ReadFrom = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """See who held more of the cell than a policy allows.

    The exit code is 1 if somebody did. Shares are of the cell's capacity as it is now, over the
    whole time. Live tasks count with what they hold, ended ones with what their job asks for.
    The policy is a file:

    [bold]tenants: {research: {at_most: 40%}}[/]
    [bold]every_scheduler: {at_most: 80%, of: cpu}[/]
    [bold]idle: {at_most: 30m}[/]
    """
    output = Output(json_to)
    allowed = NO_POLICY if policy is None else read_policy(policy)
    over_ms = _window(over) or allowed.over_ms or DAY_MS
    with cell_reader(data_dir, read_from, demo=demo, name="omega audit") as store:
        report = AuditReport.read(store, allowed, over_ms)
    output.document(
        parameters={
            "policy": None if policy is None else str(policy),
            "over_ms": over_ms,
            "demo": demo,
        },
        rows=report.rows(),
        summary=report.summary(),
    )
    output.console.print(audit_screen(report, has_policy=policy is not None))
    if report.above:
        raise typer.Exit(1)


def _window(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return window_ms(text)
    except ValueError as problem:
        raise BadInput(str(problem), field="--over") from problem
