"""What reaches a terminal of what is printed."""

import io
import json
import logging
import sys
from collections.abc import Callable

import pytest
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.panel import Panel
from rich.progress import Progress, TextColumn
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from omega.reports.printable import TEXT_MAX, escaped
from omega.terminal.consoles import Output, as_json, warnings
from omega.terminal.progress import progress_bar
from omega.terminal.terminal import PrintableConsole, PrintableStream, escape_standard_streams
from tests.unit.cli.hostile_texts import HOSTILE, LONG, groups, raw_in, without_styles

LAID_OUT_LONG = 40
"""At one width only: it takes its time."""
ESCAPE = "\x1b[2J"
SEEN = r"\x1b[2J"


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a terminal that can draw: rich draws no live screen where TERM is `dumb`."""
    monkeypatch.setenv("TERM", "xterm-256color")


def printed(*what: RenderableType, width: int = 80, coloured: bool = False) -> str:
    """Print on a terminal, or on one without colours."""
    file = io.StringIO()
    console = PrintableConsole(
        file=file,
        width=width,
        force_terminal=coloured,
        color_system="truecolor" if coloured else None,
    )
    for one in what:
        console.print(one)
    return file.getvalue()


def in_a_table(text: str) -> Table:
    table = Table(text, title=text, caption=text)
    table.add_column(Text(text))
    table.add_row(text, Text(text, "red"))
    table.add_row(Padding(text, 1), Group(Text(text), text))
    table.columns[0].footer = text
    table.show_footer = True
    return table


def in_a_grid(text: str) -> Table:
    inner = Table.grid()
    inner.add_row(Text(text))
    outer = Table.grid()
    outer.add_row(inner, "next")
    return outer


WAYS: dict[str, Callable[[str], RenderableType]] = {
    "str": str,
    "Text": Text,
    "styled": lambda text: Text(f"a {text} b", "bold red"),
    "assembled": lambda text: Text.assemble("a ", (text, "red"), (text, "link http://x")),
    "table": in_a_table,
    "table in a table": in_a_grid,
    "group": lambda text: Group(text, Text(text)),
    "rule": lambda text: Rule(Text(text)),
    "panel": lambda text: Panel(Text(text), title=Text(text), subtitle=Text(text)),
    "rule of str": Rule,
    "panel of str": lambda text: Panel(text, title=text, subtitle=text),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("width", [10, 40, 200])
def test_nothing_reaches_a_terminal_raw(way: str, width: int) -> None:
    for text in [*HOSTILE.values(), *groups(), *([LONG] if width == LAID_OUT_LONG else [])]:
        plain = printed(WAYS[way](text), width=width)
        coloured = printed(WAYS[way](text), width=width, coloured=True)

        assert [] == raw_in(plain)
        assert plain == without_styles(coloured)
        assert all(cell_len(line) <= width for line in plain.split("\n"))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("width", [10, 40, 200])
def test_a_text_is_laid_out_as_what_is_seen_of_it(way: str, width: int) -> None:
    """What rich itself drops, when a Text is made of it, is not in this one."""
    text = "a\x1b[2Jb\nc\td\u202e\u200be"

    assert printed(WAYS[way](escaped(text)), width=width) == printed(WAYS[way](text), width=width)


def test_cells_are_measured_as_they_are_seen() -> None:
    table = Table("name", "state", box=None, pad_edge=False)
    table.add_row(Text("a\x1bb"), Text("fine"))
    table.add_row("a\nb", "fine")

    assert ["name    state", "a\\x1bb  fine ", "a\\nb    fine ", ""] == printed(table).split("\n")


def test_styles_stay_on_their_characters() -> None:
    text = Text.assemble("\x1b", ("b", "bold"), "\n", ("\u202e", "red"), "e")

    written = printed(text, coloured=True)

    assert "\\x1b\x1b[1mb\x1b[0m\\n\x1b[31m\\u202e\x1b[0me\n" == written


def test_a_str_is_no_markup_and_no_emoji() -> None:
    said = "[red]a[/] :bomb: [/]"

    assert f"{said}\n" == without_styles(printed(said, coloured=True))


def test_a_title_is_no_markup() -> None:
    written = printed(Panel("a", title="[red]b[/]"), Rule("[red]c[/]"), width=30, coloured=True)

    assert "[red]b[/]" in without_styles(written)
    assert "[red]c[/]" in without_styles(written)


def test_a_style_is_no_link() -> None:
    assert "\x1b[1ma\x1b[0m\n" == printed(Text("a", "bold link http://x"), coloured=True)


def test_a_text_without_end_is_cut() -> None:
    for text in (LONG, Text(LONG), Text(LONG, spans=[*Text(LONG, "red").spans])):
        written = printed(text).replace("\n", "")

        assert len(written) in {TEXT_MAX, TEXT_MAX + 1}
        assert written.endswith("…")


def test_lines_are_printed_whole_and_no_rawer() -> None:
    file = io.StringIO()
    PrintableConsole(file=file, width=10).print_whole(f"[b]{LONG}\n{ESCAPE}")

    assert f"[b]{LONG}\n{SEEN}\n" == file.getvalue()


def test_a_live_screen_keeps_its_own_controls() -> None:
    file = io.StringIO()
    console = PrintableConsole(file=file, width=40, height=10, force_terminal=True)
    with Live(Text(ESCAPE), console=console, screen=True, auto_refresh=False) as live:
        live.update(Text(f"{ESCAPE}\nagain"), refresh=True)

    written = file.getvalue()

    assert ESCAPE not in written
    assert f"{SEEN}\\nagain" in written
    assert "\x1b[?1049h" in written


def test_what_is_printed_elsewhere_during_a_live_screen_is_escaped_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    beneath = guarded(monkeypatch)
    console = PrintableConsole(stderr=True, width=40, force_terminal=True)
    with Live(Text("live"), console=console, auto_refresh=False):
        sys.stderr.write("stray \x9b2J\n")
        PrintableConsole(stderr=True, force_terminal=True).print(Text("styled", "red"))

    written = beneath.getvalue()

    assert "\x9b" not in written
    assert "stray" in written
    assert "\x1b[31mstyled\x1b[0m" in written


@pytest.mark.parametrize("group", range(len(groups())))
def test_progress_and_states_are_printable(group: int) -> None:
    file, text = io.StringIO(), groups()[group]
    console = PrintableConsole(file=file, width=60, force_terminal=True, color_system=None)
    with console.status(text) as status:
        status.update(Text(text))
    columns = TextColumn("{task.description}", markup=False)
    with Progress(columns, console=console, auto_refresh=False) as progress:
        progress.add_task(text, total=1)

    assert [] == raw_in(without_styles(file.getvalue(), live=True))


def test_the_progress_of_a_verb_takes_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    output = Output()
    file = output.console.file = io.StringIO()
    with progress_bar(output.console) as progress:
        progress.add_task("[link=http://evil]a[/link]", total=1)

    assert "[link=http://evil]a[/link]" in without_styles(file.getvalue(), live=True)


@pytest.mark.parametrize("text", [*HOSTILE.values(), LONG], ids=[*HOSTILE, "is long"])
def test_a_document_is_ascii_and_keeps_all(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    Output("-").document(parameters={text: text}, rows=[{text: [text]}], summary={text: text})

    out, err = capsys.readouterr()
    read = json.loads(out)
    assert ({text: text}, [{text: [text]}]) == (read["parameters"], read["rows"])
    assert out.isascii()
    assert [] == raw_in(out)
    assert "" == err


def test_a_document_says_delete_as_json_does() -> None:
    assert {"\x7f": "\\\x7f"} == json.loads(as_json({"\x7f": "\\\x7f"}))
    assert "\x7f" not in as_json({"\x7f": "\\\x7f"})


def test_a_document_goes_past_a_live_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    output = Output("-")
    with progress_bar(output.console) as progress:
        progress.add_task("simulating", total=1)
        output.document(parameters={}, rows=[], summary={"a": 1})

    out, err = capsys.readouterr()
    assert {"a": 1} == json.loads(out)["summary"]
    assert "simulating" in err


def guarded(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Return what standard error writes to from now on, once it has been made printable."""
    beneath = io.StringIO()
    monkeypatch.setattr(sys, "stderr", beneath)
    escape_standard_streams()
    escape_standard_streams()
    return beneath


@pytest.mark.parametrize("group", range(len(groups())))
def test_tracebacks_and_logs_are_printable(monkeypatch: pytest.MonkeyPatch, group: int) -> None:
    standard_error, text = guarded(monkeypatch), groups()[group]
    try:
        raise RuntimeError(text)
    except RuntimeError as error:
        sys.__excepthook__(RuntimeError, error, error.__traceback__)
    assert logging.lastResort is not None
    logging.lastResort.handle(logging.LogRecord("a", logging.WARNING, "a", 1, text, None, None))

    written = standard_error.getvalue()

    assert [] == raw_in(written)
    assert 1 == written.count("Traceback")


def test_consoles_on_standard_error_write_past_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    standard_error = guarded(monkeypatch)
    assert isinstance(sys.stderr, PrintableStream)
    console = warnings()
    console.print(Text("a"), Text(ESCAPE))

    assert standard_error is console.file
    assert f"a {SEEN}\n" == standard_error.getvalue()


def test_a_stream_is_what_programs_need_of_one(tmp_path: object) -> None:
    with io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8") as beneath:
        stream = PrintableStream(beneath)

        assert beneath.fileno() == stream.fileno()
        assert not stream.isatty()
        stream.flush()
