"""`omega top`: schedulers, jobs and machines on a terminal, to sort, to narrow and to open.

Goal     Show what the cell does now, and all about one job or machine one key away.
Promise  The verb only reads, once a second at most. It ends with q, Ctrl-C or SIGTERM, with code 0,
         and leaves the terminal as it was.
Source   Textual; docs/guide/operate.md.
"""

import sys
from importlib.util import find_spec
from typing import Annotated, Final

import typer

from omega.cli.cell_access import DemoOption, ReadFrom, cell_reader
from omega.clock import RealClock
from omega.errors import BadInput
from omega.framework.kinds import startable_kinds
from omega.processes.stopping import stop_on_signals
from omega.reports.top import Tab, TopReader
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir

NO_EXTRA: Final = "omega top needs an extra: pip install 'omega-scheduler[top]'"
NO_TERMINAL: Final = "omega top needs a terminal; for scripts there is omega status --json -"


def command(
    show: Annotated[Tab, typer.Option(help="What is listed at first.")] = Tab.SCHEDULERS,
    light: Annotated[bool, typer.Option("--light", help="On a light terminal.")] = False,
    data_dir: DataDir = None,
    read_from: ReadFrom = None,
    demo: DemoOption = False,
) -> None:
    """Watch schedulers, jobs and machines; sort, narrow and open them.

    1, 2 and 3 choose what is listed, s and r the order, / narrows the list, Enter opens a job or a
    machine, q ends it.
    """
    if not find_spec("textual"):
        raise BadInput(NO_EXTRA)
    if not (sys.stdin.isatty() and Output().console.is_terminal):
        raise BadInput(NO_TERMINAL)
    from omega.cli.top.app import TopApp  # noqa: PLC0415

    with (
        cell_reader(data_dir, read_from, demo=demo, name="omega top") as store,
        stop_on_signals() as stop,
    ):
        reader = TopReader(store, startable_kinds())
        app = TopApp(reader, RealClock(), stop, tab=show, is_light=light)
        app.run()
    if app.return_code:
        raise typer.Exit(app.return_code)
