"""What a console would print, as a text for another program's screen."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Group
from rich.table import Table
from rich.text import Text

from omega.terminal.drawn import drawn
from omega.terminal.terminal import PrintableConsole
from tests.unit.cli.hostile_texts import groups, raw_in


def a_screen(text: str) -> Group:
    table = Table(box=None)
    table.add_column("name")
    table.add_row(Text(text, "red"))
    return Group(Text(text, "bold"), table)


@pytest.mark.parametrize("width", [20, 60])
@pytest.mark.parametrize("text", groups())
def test_it_is_what_a_console_prints(text: str, width: int) -> None:
    file = io.StringIO()
    PrintableConsole(file=file, width=width).print(a_screen(text))

    told = drawn(a_screen(text), width)

    assert [line.rstrip() for line in file.getvalue().rstrip().split("\n")] == [
        line.rstrip() for line in told.plain.split("\n")
    ]
    assert [] == raw_in(told.plain)
    assert all(cell_len(line) <= width for line in told.plain.split("\n"))


def test_styles_are_kept_and_links_are_not() -> None:
    told = drawn(Text("x", "red link http://evil"), 10)

    styles = [str(span.style) for span in told.spans]
    assert any("red" in style for style in styles)
    assert not any("evil" in style for style in styles)
