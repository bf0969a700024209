"""Stories as a person reads them: a line for each event, in time.

Goal     Tell what happened to a job or on a machine, when and by whom.
Promise  Drawn from values alone. Of a long story, its beginning and its end are shown.
Source   omega.reports.stories.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from omega.reports.printable import printable, short
from omega.reports.stories.events import Happened, Story, StoryEvent
from omega.reports.wording import things

FIRST_SHOWN: Final = 10
LAST_SHOWN: Final = 30
BY_WIDTH_MAX: Final = 20
COLOURS: Final = {
    Happened.PLACED: "green",
    Happened.REFUSED: "yellow",
    Happened.EVICTED: "red",
    Happened.LOST: "red",
}


def story_screen(story: Story) -> RenderableType:
    """Return a story, with what is not told."""
    parts: list[RenderableType] = [Text(), Text("what happened, in UTC", "bold")]
    parts.append(_events(story.events) if story.events else Text("Nothing is on record.", "dim"))
    return Group(*parts, *(Text(printable(said), "dim") for said in story.not_told))


def _events(events: Sequence[StoryEvent]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", max_width=BY_WIDTH_MAX)
    table.add_column(overflow="fold")
    for event in _shown(events):
        if event is None:
            left_out = things(len(events) - FIRST_SHOWN - LAST_SHOWN, "event")
            table.add_row("...", "", "", Text(f"{left_out} left out; --json has all", "dim"))
            continue
        by = "" if event.by is None else short(event.by)
        told = f"{printable(event.told)}{_until(event)}"
        word = Text(event.what.value, COLOURS.get(event.what, ""))
        table.add_row(_time(event.at_ms), word, Text(by), Text(told))
    return table


def _shown(events: Sequence[StoryEvent]) -> Iterator[StoryEvent | None]:
    """Yield the events to show, and None for those that are left out."""
    if len(events) <= FIRST_SHOWN + LAST_SHOWN:
        yield from events
        return
    yield from events[:FIRST_SHOWN]
    yield None
    yield from events[-LAST_SHOWN:]


def _until(event: StoryEvent) -> str:
    return "" if event.until_ms == event.at_ms else f", the last {_time(event.until_ms)}"


def _time(milliseconds: int) -> str:
    """Write a time with milliseconds, because conflicts are that near to each other."""
    at = datetime.fromtimestamp(milliseconds / 1_000, UTC)
    return f"{at:%m-%d %H:%M:%S}.{milliseconds % 1_000:03d}"
