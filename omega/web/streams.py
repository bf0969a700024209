"""The streams of events to browsers.

Goal     Tell all browsers the same, encoded once.
Promise  There are at most `streams_max` streams, and each holds at most `chunks_max` chunks that
         its reader has not taken. A reader who falls behind is dropped, and the log says so.
         Everything here runs in the server's event loop.
Source   Server-sent events (WHATWG HTML, section 9.2).
"""

import asyncio
from collections.abc import Callable
from typing import Final

CHUNKS_MAX: Final = 30
"""Half a minute of what changes each second."""


class Stream:
    """What one browser has still to be told."""

    def __init__(self, chunks_max: int) -> None:
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue(chunks_max)
        self.over = asyncio.Event()
        """Set once nothing more will come: it was dropped, or the server ends."""

    def put(self, chunk: bytes) -> bool:
        """Add a chunk; return False if the reader has too many left to read."""
        try:
            self._chunks.put_nowait(chunk)
        except asyncio.QueueFull:
            return False
        return True

    async def next(self) -> bytes:
        """Wait for the next chunk and return it."""
        return await self._chunks.get()


class Streams:
    """All open streams."""

    def __init__(
        self, tell: Callable[[str], None], *, streams_max: int, chunks_max: int = CHUNKS_MAX
    ) -> None:
        self._tell = tell
        self._streams_max = streams_max
        self._chunks_max = chunks_max
        self._open: set[Stream] = set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    def open(self) -> Stream | None:
        """Return a new stream; None if there are as many as there may be."""
        if len(self._open) >= self._streams_max:
            self._tell(f"a browser is turned away: {self._streams_max} look at the page already")
            return None
        if self._closed:
            return None
        stream = Stream(self._chunks_max)
        self._open.add(stream)
        return stream

    def forget(self, stream: Stream) -> None:
        """Note that a stream has ended."""
        self._open.discard(stream)

    def publish(self, chunk: bytes) -> None:
        """Give every stream a chunk; drop those whose readers are too slow."""
        for stream in list(self._open):
            if not stream.put(chunk):
                self.forget(stream)
                stream.over.set()
                self._tell(
                    f"a browser is dropped: it has not read the last {self._chunks_max} updates"
                )

    def close(self) -> None:
        """End all streams; no more can be opened."""
        self._closed = True
        for stream in list(self._open):
            stream.over.set()
