"""The demo as a picture for documents.

Goal     Let a page show what a demo looks like, drawn from a real one.
Promise  One SVG file that refers to nothing outside itself, fonts included.
Source   rich's export of consoles, with our own template, because rich's template fetches fonts.
"""

from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Final

from rich.console import RenderableType
from rich.panel import Panel
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from omega.reports.printable import printable
from omega.terminal.terminal import PrintableConsole

PICTURE_WIDTH: Final = 96
"""Columns of a picture: wide enough for headers in full, small enough for a page."""

THEME: Final = TerminalTheme(
    (13, 17, 23),
    (201, 209, 217),
    [
        (72, 79, 88),
        (255, 123, 114),
        (63, 185, 80),
        (210, 153, 34),
        (88, 166, 255),
        (188, 140, 255),
        (57, 197, 207),
        (177, 186, 196),
    ],
    [
        (72, 79, 88),
        (255, 161, 152),
        (86, 211, 100),
        (227, 179, 65),
        (121, 192, 255),
        (210, 168, 255),
        (86, 212, 221),
        (255, 255, 255),
    ],
)

TEMPLATE: Final = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
    font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono",
        "Liberation Mono", monospace;
    font-size: {char_height}px;
    line-height: {line_height}px;
    white-space: pre;
}}
.{unique_id}-title {{
    font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif;
    font-size: 18px;
    font-weight: bold;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix" xml:space="preserve">
{matrix}
</g>
</g>
</svg>
"""


def titled(part: RenderableType, title: str) -> RenderableType:
    """Put a part into a frame like the screen's."""
    return Panel(
        part,
        title=Text(printable(title), "bold cyan"),
        title_align="left",
        border_style="bright_black",
    )


def draw(path: Path, title: str, parts: Sequence[RenderableType]) -> None:
    """Draw the parts one below the other."""
    console = PrintableConsole(
        file=StringIO(),
        record=True,
        width=PICTURE_WIDTH,
        force_terminal=True,
        color_system="truecolor",
    )
    for part in parts:
        console.print(part)
    svg = console.export_svg(title=title, theme=THEME, code_format=TEMPLATE, unique_id="omega")
    path.write_text(svg + "\n", encoding="utf-8")
