r"""The only way to a terminal: consoles and a stream that escape all texts.

Goal     Show any submitted text on a screen, in a message or in a traceback as plain characters.
Promise  The terminal receives rich's own codes for styles and cursor moves, the line ends of the
         layout, and otherwise only printable characters, whatever a print, a Text or a cell of a
         table holds. A str is not read as markup, and a style makes no link. A line end within a
         text is written as a visible \n. Texts are escaped before they are measured.
Source   rich.console.Console.render, which draws everything.
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
"""Longest str in which rich may colour figures: a search of 20,000 characters takes it 10 s."""


class PrintableConsole(Console):
    """A console that escapes all texts, and reads no str as markup."""

    def __init__(self, *, stderr: bool = False, **how: Any) -> None:  # noqa: ANN401 - as rich's own
        if stderr:
            how.setdefault("file", _beneath(sys.stderr))
        super().__init__(stderr=stderr, markup=False, emoji=False, **how)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render an object as printable segments; rich calls this again for each of its parts."""
        part: Any = rich_cast(renderable)
        return map(_printable_segment, super().render(_printable_part(part), options))

    def render_str(self, text: str, **how: Any) -> Text:  # noqa: ANN401 - as rich's own
        """Return the escaped Text of a str, which rich measures and draws."""
        said = printable(text, TEXT_MAX)
        if len(said) > HIGHLIGHTED_MAX:
            how["highlight"] = False
        return super().render_str(said, **how)

    def status(self, status: RenderableType, **how: Any) -> Status:  # noqa: ANN401 - as rich's own
        """Show what is being done while the block runs."""
        return super().status(Text(status) if isinstance(status, str) else status, **how)

    def print_whole(self, lines: str) -> None:
        """Print lines as they are, however long: neither cut nor wrapped nor coloured."""
        self.file.writelines(f"{escaped(line)}\n" for line in lines.split("\n"))
        self.file.flush()


class PrintableStream(io.TextIOBase):
    """A stream that escapes what is written, for code that prints without a console.

    Its `isatty` is false, so that writers send no colours.
    """

    def __init__(self, beneath: IO[str]) -> None:
        super().__init__()
        self.rich_proxied_file: Final = beneath
        """The stream beneath. Consoles write to it directly: they escape texts themselves."""

    def write(self, text: str) -> int:
        """Write a text escaped, except for its line ends."""
        self.rich_proxied_file.write(escaped(text, keep="\n"))
        return len(text)

    def flush(self) -> None:
        """Flush the stream beneath."""
        self.rich_proxied_file.flush()

    def fileno(self) -> int:
        """Return the descriptor beneath."""
        return self.rich_proxied_file.fileno()


def escape_standard_streams() -> None:
    """Make everything that this process prints printable from now on.

    Characters that the terminal's encoding lacks are replaced instead of raising an error.
    Python's tracebacks, warnings and logs go to standard error escaped.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if not isinstance(sys.stderr, PrintableStream):
        sys.stderr = PrintableStream(sys.stderr)


def _beneath(file: Any) -> Any:  # noqa: ANN401 - streams of any kind, ours and rich's
    """Return the innermost stream, beneath a PrintableStream and that of rich's live screen."""
    while (proxied := getattr(file, "rich_proxied_file", None)) is not None:
        file = proxied
    return file


def _printable_part(part: RenderableType) -> RenderableType:
    """Return a part with its texts escaped; this precedes the layout, so that widths are right."""
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
    """Return a panel's title as a Text, because rich would read a str as markup."""
    return _printable_text(Text(title) if isinstance(title, str) else title) if title else None


def _printable_text(text: Text) -> Text:
    """Return a text escaped, with each style on the same characters as before."""
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
    """Return a segment escaped and without links, as the terminal receives it."""
    text, style, control = segment
    if control is not None:  # it moves the cursor, and holds no text
        return segment
    if style is not None and style.link is not None:
        style = style.update_link(None)
    return Segment(escaped(text, keep="\n"), style)
