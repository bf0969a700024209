"""`omega web`: a page that shows the cell, live, in a browser.

Goal     Let an operator see what the schedulers do and where they get into each other's way.
Promise  The verb only reads. On an address that other machines reach it starts only with a token.
         It ends with Ctrl-C or SIGTERM, with code 0.
Source   docs/guide/web.md.
"""

import os
import socket
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import typer

from omega.cli.cell_access import DemoOption, ReadFrom, reader_opener
from omega.cli.options import EndWithParent
from omega.clock import RealClock
from omega.errors import BadInput
from omega.processes.stopping import stop_on_signals, stop_with_parent
from omega.terminal.consoles import Output, warn
from omega.terminal.options import DataDir

TOKEN_VARIABLE: Final = "OMEGA_WEB_TOKEN"
LOOPBACK: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8_642
NO_EXTRA: Final = "the page needs an extra: pip install 'omega-scheduler[web]'"


def has_extra() -> bool:
    """Return whether what the page needs is installed."""
    return all(find_spec(name) for name in ("starlette", "uvicorn"))


def free_port(host: str = LOOPBACK) -> int:
    """Return the usual port, or another one if that is taken; 0 if none can be had."""
    for port in (DEFAULT_PORT, 0):
        try:
            with socket.create_server((host, port)) as listener:
                found: int = listener.getsockname()[1]
                return found
        except (OSError, UnicodeError):
            continue
    return 0


def command(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="To listen on; others than this need a token.")
    ] = LOOPBACK,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            metavar="N",
            help=f"To listen on; 0: any free one. {DEFAULT_PORT} if not given, or a free one if"
            " that is taken.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Whose first line opens the page; also: OMEGA_WEB_TOKEN."
        ),
    ] = None,
    data_dir: DataDir = None,
    read_from: ReadFrom = None,
    demo: DemoOption = False,
    end_with_parent: EndWithParent = False,
) -> None:
    """Serve a page that shows the cell, live, in a browser.

    It goes on until Ctrl-C. It shows machines, queue, jobs, schedulers and their conflicts, and
    quotas, as they change.
    """
    if not has_extra():
        raise BadInput(NO_EXTRA)
    from omega.web.server import Serving, checked_token, listening, serve  # noqa: PLC0415

    token = checked_token(host, read_token(token_file))
    with (
        stop_on_signals() as stop,
        listening(host, free_port(host) if port is None else port) as listener,
        reader_opener(data_dir, read_from, demo=demo, name="omega web") as opened,
        closing(opened()) as watched,
        closing(opened()) as asked,
    ):
        if end_with_parent:
            stop_with_parent(stop)
        serve(
            Serving(
                listener=listener,
                host=host,
                token=token,
                watched=watched,
                asked=asked,
                clock=RealClock(stop),
                tell=warn,
                stop=stop,
                ready=lambda: _say_where(listener, host),
            )
        )


def _say_where(listener: socket.socket, host: str) -> None:
    from omega.web.server import address_of  # noqa: PLC0415

    sentence = f"The page is at {address_of(listener, host)}"
    Output().console.print(sentence, highlight=False, soft_wrap=True)


def read_token(file: Path | None) -> str | None:
    """Return the token of the file or of the environment; None if neither is given."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise BadInput(f"{file} cannot be read", field="--token-file") from error
    return text.partition("\n")[0].strip()
