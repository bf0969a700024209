r"""The one way to a terminal: consoles and a stream that print nothing raw.

Goal     Let a screen, a sentence or a traceback hold whatever was submitted, and the terminal show
         it as characters.
Promise  Whatever is put into a print, a Text or a cell of a table: besides what rich writes itself
         to style text and to move the cursor, the terminal is given printable characters and the
         ends of lines that a layout makes. A str is no markup, a style is no link, and a line that
         ends within a text goes on behind a visible \n. Texts are escaped before they are measured.
Source   rich.console.Console.render, through which everything passes that is drawn.
"""

import io
import sys
from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from itertools import accumulate
from typing import IO, Any, Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.panel import Panel
from rich.protocol import rich_cast
from rich.rule import Rule
from rich.segment import Segment
from rich.status import Status
from rich.table import Table
from rich.text import Span, Text

from omega.reports.printable import TEXT_MAX, escaped, is_printable, printable

HIGHLIGHTED_MAX: Final = 1_000
"""Characters of a str whose figures may be coloured: rich takes 10 s to find none in 20,000."""


class PrintableConsole(Console):
    """A console that escapes all texts, and takes no str for markup."""

    def __init__(self, *, stderr: bool = False, **how: Any) -> None:  # noqa: ANN401 - as rich's own
        if stderr:
            how.setdefault("file", _beneath(sys.stderr))
        super().__init__(stderr=stderr, markup=False, emoji=False, **how)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Draw something, and all that it consists of: rich calls this for each part again."""
        part: Any = rich_cast(renderable)
        return map(_printable_segment, super().render(_printable_part(part), options))

    def render_str(self, text: str, **how: Any) -> Text:  # noqa: ANN401 - as rich's own
        """Return a str as it is measured and drawn."""
        said = printable(text, TEXT_MAX)
        if len(said) > HIGHLIGHTED_MAX:
            how["highlight"] = False
        return super().render_str(said, **how)

    def status(self, status: RenderableType, **how: Any) -> Status:  # noqa: ANN401 - as rich's own
        """Say what is being done, until it is done."""
        return super().status(Text(status) if isinstance(status, str) else status, **how)

    def print_whole(self, lines: str) -> None:
        """Print lines as they are, however long: neither cut nor wrapped nor coloured."""
        self.file.writelines(f"{escaped(line)}\n" for line in lines.split("\n"))
        self.file.flush()


class PrintableStream(io.TextIOBase):
    """A stream whose lines are printable, for what prints without a console.

    It is no terminal to its writers: they are to send no colours.
    """

    def __init__(self, beneath: IO[str]) -> None:
        super().__init__()
        self.rich_proxied_file: Final = beneath
        """Where consoles write, past us: they escape what is to be escaped themselves."""

    def write(self, text: str) -> int:
        """Write a text, whose lines may end."""
        self.rich_proxied_file.write(escaped(text, keep="\n"))
        return len(text)

    def flush(self) -> None:
        """Hand out what was written."""
        self.rich_proxied_file.flush()

    def fileno(self) -> int:
        """Return the descriptor beneath."""
        return self.rich_proxied_file.fileno()


def print_what_can_be() -> None:
    """Have all that this process prints come out printable, from now on.

    Characters that the terminal's encoding lacks are replaced, instead of ending a command. What
    Python itself prints, tracebacks and warnings and logs, goes to standard error escaped.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if not isinstance(sys.stderr, PrintableStream):
        sys.stderr = PrintableStream(sys.stderr)


def _beneath(file: Any) -> Any:  # noqa: ANN401 - streams of any kind, ours and rich's
    """Return the stream itself, beneath ours and that of a live screen."""
    while (proxied := getattr(file, "rich_proxied_file", None)) is not None:
        file = proxied
    return file


def _printable_part(part: RenderableType) -> RenderableType:
    """Return what is drawn instead: before it is laid out, so that all widths come out right."""
    if isinstance(part, Text):
        return _printable_text(part)
    if isinstance(part, Table):
        made = copy(part)
        made.columns = [
            replace(
                column,
                header=_printable_part(column.header),
                footer=_printable_part(column.footer),
                _cells=[_printable_part(cell) for cell in column.cells],
            )
            for column in part.columns
        ]
        return made
    if isinstance(part, Panel):
        panel = copy(part)
        panel.title, panel.subtitle = map(_printable_title, (part.title, part.subtitle))
        return panel
    if isinstance(part, Rule) and isinstance(part.title, Text):
        rule = copy(part)
        rule.title = _printable_text(part.title)
        return rule
    return part


def _printable_title(title: str | Text | None) -> Text | None:
    """Return the title of a panel, which rich would take for markup if it were a str."""
    return _printable_text(Text(title) if isinstance(title, str) else title) if title else None


def _printable_text(text: Text) -> Text:
    """Return a text with its styles where they were, each on the same characters."""
    plain = text.plain
    if len(plain) <= TEXT_MAX and is_printable(plain):
        return text
    parts = [escaped(each) for each in plain[:TEXT_MAX]]
    made = text.blank_copy("".join(parts) + "…" * (len(plain) > TEXT_MAX))
    at = [0, *accumulate(map(len, parts))]
    made.spans = [
        Span(at[span.start], at[min(span.end, len(parts))], span.style)
        for span in text.spans
        if 0 <= span.start < len(parts)
    ]
    return made


def _printable_segment(segment: Segment) -> Segment:
    """Return what reaches the terminal, whichever way it was drawn."""
    text, style, control = segment
    if control is not None:  # it moves the cursor, and has no text of anybody's
        return segment
    if style is not None and style.link is not None:
        style = style.update_link(None)
    return Segment(escaped(text, keep="\n"), style)
