"""The one reader behind the page: it looks at the store each second, however many look at it.

Goal     Have ten browsers cost the database what one does.
Promise  Each look reads only what is new, and sums that may be slow at most a twentieth of the
         time. While the store is away the last state stays, with the time since when; the log says
         once that it is away and once that it is back. One thread looks; others read what it saw.
Source   docs/decisions/0052-the-page.md.
"""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from omega.cell.view import View
from omega.clock import Clock
from omega.errors import OmegaError
from omega.model.machines import Snapshot
from omega.model.quotas import QuotaUse
from omega.reports.cell import CellReport
from omega.reports.conflicts import ConflictTally
from omega.reports.exposition import Exported
from omega.reports.lasting import LastingCounts
from omega.reports.live import (
    NO_USE,
    History,
    conflicts_row,
    point_of,
    quotas_row,
    room_of,
    schedulers_row,
    use_of,
)
from omega.reports.machines import snapshot_of
from omega.reports.queue import queue_row
from omega.store.protocols import ReaderStore
from omega.store.status import Notice
from omega.store.watching import QueueLine
from omega.web.cell_map import CellMap
from omega.web.pace import Paced

INTERVAL_S: Final = 1.0
SUMS_S: Final = 2.0
"""How often quotas and notices are read."""
NAMES_PER_BLOCK: Final = 1_000
"""Machine names that one request returns."""


@dataclass(frozen=True)
class Seen:
    """What the watcher saw last, as JSON by part."""

    parts: Mapping[str, str]
    cell: Exported
    """The same as values, for Prometheus."""

    @property
    def is_up(self) -> bool:
        """Whether the store answered the last look."""
        return self.cell.is_up


class Watcher:
    """Looks at the cell and publishes what has changed."""

    def __init__(
        self,
        store: ReaderStore,
        clock: Clock,
        *,
        tell: Callable[[str], None],
        publish: Callable[[bytes], None],
    ) -> None:
        """`publish` gets each chunk of the stream, `tell` each line for the log."""
        self._store = store
        self._clock = clock
        self._tell = tell
        self._publish = publish
        self._lock = threading.Lock()
        self._view: View | None = None
        self._map: CellMap | None = None
        self._maps = 0
        self._ids: dict[str, int] = {}
        self._tally = ConflictTally()
        self._counts = LastingCounts()
        self._mark = 0
        self._history = History()
        self._use = Paced(clock, INTERVAL_S, NO_USE)
        self._queue: Paced[list[QueueLine]] = Paced(clock, INTERVAL_S, [])
        self._quotas: Paced[list[QuotaUse]] = Paced(clock, SUMS_S, [])
        self._notices: Paced[list[Notice]] = Paced(clock, SUMS_S, [])
        self._away_since: str | None = None
        self._looked_s: float | None = None
        self.seen = Seen({}, Exported(is_up=False))

    def look(self) -> None:
        """Read what is new and publish it; if the store is away, say so and keep the last state."""
        try:
            chunk = self._look()
        except OmegaError as error:
            if self._away_since is None:
                self._away_since = self._clock.wall().isoformat(timespec="seconds")
                self._tell(f"the database is away, and the page goes on without it: {error}")
            chunk = self._away({"away": json.dumps({"since": self._away_since})})
        else:
            if self._away_since is not None:
                self._tell("the database is back")
                self._away_since = None
            self._looked_s = self._clock.now()
        self._publish(chunk)

    @property
    def looked_s_ago(self) -> float | None:
        """How long ago the store answered last; None if it has not yet."""
        return None if self._looked_s is None else self._clock.now() - self._looked_s

    def state(self) -> str:
        """Return all parts and the history, as one JSON object."""
        with self._lock:
            parts = dict(self.seen.parts)
            parts["history"] = json.dumps(self._history.row(), separators=(",", ":"))
            parts["map"] = json.dumps(self._map_row())
        return _object(parts)

    def packed_map(self) -> bytes:
        """Return the whole map."""
        with self._lock:
            return b"" if self._map is None else self._map.packed()

    def names(self, block: int) -> list[str]:
        """Return the names of the machines of a block, in the order of the map."""
        with self._lock:
            first = block * NAMES_PER_BLOCK
            return [] if self._view is None else list(self._view.names[first:][:NAMES_PER_BLOCK])

    def machine(self, machine: int) -> Snapshot | None:
        """Return what the view has of one machine; None if it does not know it."""
        with self._lock:
            return None if self._view is None else snapshot_of(self._view, machine)

    def machine_named(self, name: str) -> int | None:
        """Return the id of the machine of this name; None without one."""
        with self._lock:
            return self._ids.get(name)

    def _look(self) -> bytes:
        events = self._catch_up()
        reports = self._store.reports()
        judged = self._store.judged_since(self._mark)
        now_s = self._clock.now()
        self._tally.note(judged, now_s)
        self._mark = judged.mark
        queue = self._queue.read(self._store.queue)
        quotas = self._quotas.read(self._store.quotas)
        notices = self._notices.read(self._store.notices)
        assert self._view is not None
        use = use_of(self._use.read(self._store.use), queue, self._view)
        report = CellReport(reports, use, notices, quotas)
        cell = Exported(
            is_up=True,
            report=report,
            queue=queue,
            room=room_of(self._view),
            judged=self._tally.counts(),
            counted=self._counts.note(reports, now_s),
        )
        point = point_of(report, int(self._clock.wall().timestamp() * 1_000))
        rows: dict[str, object] = {
            "cell": report.summary(),
            "schedulers": schedulers_row(reports),
            "queue": queue_row(queue),
            "quotas": quotas_row(quotas),
            "conflicts": conflicts_row(self._tally, now_s),
            "point": point,
            "away": {"since": None},
        }
        parts = {name: json.dumps(row, separators=(",", ":")) for name, row in rows.items()}
        before = self.seen.parts
        with self._lock:
            self._history.add(point)
            self.seen = Seen(parts, cell)
        changed = {name: text for name, text in parts.items() if before.get(name) != text}
        return events + _event("state", _object(changed))

    def _catch_up(self) -> bytes:
        """Bring view and map up to date; return the event that tells of it."""
        view = self._view
        if view is not None:
            changes = self._store.changes_since(view.mark)
            if changes.generation == view.generation:
                with self._lock:
                    view.catch_up(changes)
                    assert self._map is not None
                    delta = self._map.catch_up(view, changes.rows.id)
                return b"" if delta is None else _event("rows", json.dumps(delta.row()))
            self._mark = 0  # after a restore, the transactions' numbers may be lower than before
        view = View(self._store.snapshot())
        with self._lock:
            self._view = view
            self._ids = dict(zip(view.names, view.id.tolist(), strict=True))
            self._maps += 1
            self._map = CellMap(view, self._maps)
            return _event("map", json.dumps(self._map_row()))

    def _map_row(self) -> dict[str, object]:
        return {
            "map": self._maps,
            "machines": 0 if self._map is None else len(self._map),
            "names_per_block": NAMES_PER_BLOCK,
        }

    def _away(self, parts: Mapping[str, str]) -> bytes:
        """Return the event of parts that replace those of the last state."""
        with self._lock:
            before = self.seen
            self.seen = Seen({**before.parts, **parts}, replace(before.cell, is_up=False))
        return _event("state", _object(parts))


def _object(parts: Mapping[str, str]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in parts.items()) + "}"


def _event(name: str, data: str) -> bytes:
    return f"event: {name}\ndata: {data}\n\n".encode()
