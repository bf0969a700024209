"""Streams to browsers: bounded, whoever reads."""

import asyncio

import pytest
from starlette.types import Message

from omega.web.app import pump
from omega.web.streams import Streams


def test_everybody_is_told_the_same() -> None:
    async def told() -> list[bytes]:
        streams = Streams(list[str]().append, streams_max=2)
        both = [streams.open(), streams.open()]
        streams.publish(b"news")
        return [await stream.next() for stream in both if stream is not None]

    assert [b"news", b"news"] == asyncio.run(told())


def test_there_are_no_more_than_there_may_be() -> None:
    async def opened() -> list[bool]:
        streams = Streams(list[str]().append, streams_max=1)
        first = streams.open()
        second = streams.open()
        assert first is not None
        streams.forget(first)
        third = streams.open()
        streams.close()
        return [each is not None for each in (first, second, third, streams.open())]

    assert [True, False, True, False] == asyncio.run(opened())


def test_who_does_not_read_is_dropped_and_the_log_says_so() -> None:
    log: list[str] = []

    async def dropped() -> tuple[bool, bool, int]:
        streams = Streams(log.append, streams_max=2, chunks_max=3)
        slow, quick = streams.open(), streams.open()
        assert slow is not None
        assert quick is not None
        for _ in range(4):
            streams.publish(b"news")
            await quick.next()
        return slow.over.is_set(), quick.over.is_set(), len(streams)

    assert (True, False, 1) == asyncio.run(dropped())
    assert ["a browser is dropped: it has not read the last 3 updates"] == log


@pytest.mark.parametrize("turns", range(4))
def test_a_stream_ends_although_news_comes_at_the_same_time(turns: int) -> None:
    """Cancelled so many turns of the event loop after the news."""

    async def send(_: Message) -> None:
        pass

    async def is_over() -> bool:
        stream = Streams(list[str]().append, streams_max=1).open()
        assert stream is not None
        pumping = asyncio.ensure_future(pump(stream, send))
        for _ in range(9):
            await asyncio.sleep(0)  # until it waits for news
        stream.put(b"news")
        for _ in range(turns):
            await asyncio.sleep(0)
        pumping.cancel()
        for _ in range(9):
            await asyncio.sleep(0)
        return pumping.done()

    assert asyncio.run(is_over())
