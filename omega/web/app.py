"""The page as an application: which path is answered with what.

Goal     One shell for all pages, JSON documents, and one stream of what changes.
Promise  Nothing is written but a cookie. Documents are values of omega.reports. What the store
         refuses or does not answer is one sentence and a status that fits it.
Source   Starlette; docs/decisions/0052-the-page.md.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from omega.errors import OmegaError
from omega.reports.jobs import JOB_MAX
from omega.web.asking import NUMBER_MAX, Asking
from omega.web.exposition import CONTENT_TYPE, exposition
from omega.web.guard import COOKIE, LOGIN, Guard, Token
from omega.web.shipped import Shipped
from omega.web.streams import Stream, Streams
from omega.web.watcher import Watcher

SHELL_PATHS: Final = (
    "/",
    "/queue",
    "/jobs",
    "/job/{number:int}",
    "/machine/{number:int}",
    "/schedulers",
    "/shares",
)
LOGIN_BYTES_MAX: Final = 4_096
STALE_S: Final = 15.0
"""Without an answer of the store for so long, the page does not count as healthy."""
KEEP_ALIVE_S: Final = 15.0
"""A stream without news says something after so long, so that a reader who is gone is noticed."""


class Page:
    """Answers requests from what the watcher saw, and from the store."""

    def __init__(
        self,
        watcher: Watcher,
        asking: Asking,
        streams: Streams,
        tell: Callable[[str], None],
        *,
        token: Token | None,
    ) -> None:
        """`tell` gets lines for the log that a stranger may cause."""
        self._watcher = watcher
        self._asking = asking
        self._streams = streams
        self._tell = tell
        self._token = token
        self._shipped = Shipped()

    def application(self, host: str) -> ASGIApp:
        """Return the application, with its guard, for a server that listens on this address."""
        app = Starlette(
            routes=[
                *(Route(path, self._shell) for path in SHELL_PATHS),
                Route(LOGIN, self._login_form),
                Route(LOGIN, self._login, methods=["POST"]),
                Route("/static/{name}", self._static),
                Route("/data/state", self._state),
                Route("/data/map", self._map),
                Route("/data/names/{block:int}", self._names),
                Route("/data/stream", _Endless(self._stream)),
                Route("/data/jobs", self._jobs),
                Route("/data/job/{number:int}", self._job),
                Route("/data/machine/{number:int}", self._machine),
                Route("/data/story/job/{number:int}", self._job_story),
                Route("/data/story/machine/{number:int}", self._machine_story),
                Route("/data/output/{job:int}/{task:int}/{stream}", self._output),
                Route("/data/find", self._find),
                Route("/healthz", self._healthz),
                Route("/metrics", self._metrics),
            ],
            exception_handlers={OmegaError: _refused, 404: _missing},
        )
        app.router.redirect_slashes = False  # it would name the scheme that a proxy hides
        return Guard(app, host=host, token=self._token, tell=self._tell)

    def _shell(self, _: Request) -> Response:
        return self._shipped.answer("index.html")

    def _static(self, request: Request) -> Response:
        known = request.headers.get("if-none-match")
        return self._shipped.answer(request.path_params["name"], known=known)

    def _login_form(self, _: Request) -> Response:
        return self._shipped.login("" if self._token else "This page needs no token.")

    async def _login(self, request: Request) -> Response:
        body = b""
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > LOGIN_BYTES_MAX:
                    return PlainTextResponse("The form is too long.\n", status_code=413)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        said = parse_qs(body.decode(errors="replace")).get("token", [""])[0].strip()
        if self._token is None or not self._token.opens(said):
            self._tell("a login with a wrong token")
            return self._shipped.login("That is not the token.", status=401)
        answer = Response(status_code=303, headers={"Location": "/"})
        answer.set_cookie(COOKIE, self._token.cookie, httponly=True, samesite="strict")
        return answer

    def _state(self, _: Request) -> Response:
        return _json(self._watcher.state())

    def _map(self, _: Request) -> Response:
        return Response(self._watcher.packed_map(), media_type="application/octet-stream")

    def _names(self, request: Request) -> Response:
        block = min(request.path_params["block"], NUMBER_MAX)
        return JSONResponse(self._watcher.names(block))

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":
            await Response(media_type="text/event-stream")(scope, receive, send)
            return
        stream = self._streams.open()
        if stream is None:
            full = PlainTextResponse(
                "As many browsers look at this page as may: try again later.\n",
                status_code=503,
                headers={"Retry-After": "60"},
            )
            await full(scope, receive, send)
            return

        async def left() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        try:
            await _first_of(pump(stream, send), left(), stream.over.wait())
            if stream.over.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(1):
                        await _more(send, b"", more=False)
        finally:
            self._streams.forget(stream)

    def _jobs(self, request: Request) -> Response:
        return _found(self._asking.jobs(request.query_params))

    def _job(self, request: Request) -> Response:
        number = request.path_params["number"]
        return _found(self._asking.job(number) if number <= JOB_MAX else None)

    def _machine(self, request: Request) -> Response:
        number = request.path_params["number"]
        return _found(self._asking.machine(number) if number <= NUMBER_MAX else None)

    def _job_story(self, request: Request) -> Response:
        number = request.path_params["number"]
        return _found(self._asking.job_story(number) if number <= JOB_MAX else None)

    def _machine_story(self, request: Request) -> Response:
        number = request.path_params["number"]
        return _found(self._asking.machine_story(number) if number <= NUMBER_MAX else None)

    def _output(self, request: Request) -> Response:
        asked = request.path_params
        if asked["job"] > JOB_MAX:
            return _found(None)
        return _found(self._asking.output(asked["job"], asked["task"], asked["stream"]))

    def _find(self, request: Request) -> Response:
        return _found(self._asking.find(request.query_params.get("text", "")))

    def _healthz(self, _: Request) -> Response:
        ago = self._watcher.looked_s_ago
        if ago is None or ago > STALE_S:
            return PlainTextResponse("The database does not answer.\n", status_code=503)
        return PlainTextResponse("ok\n")

    def _metrics(self, _: Request) -> Response:
        return Response(
            exposition(replace(self._watcher.seen.cell, streams=len(self._streams))),
            media_type=CONTENT_TYPE,
        )


class _Endless:
    """An application for a route: of a class, Starlette does not make one of requests."""

    def __init__(self, run: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._run = run

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._run(scope, receive, send)


async def pump(stream: Stream, send: Send) -> None:
    """Send the chunks of a stream until this is cancelled."""
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await _more(send, b"retry: 2000\n\n")
    while True:
        try:
            # Not by asyncio.wait_for: before Python 3.12 it forgets that it is cancelled if the
            # chunk comes at the same time.
            async with asyncio.timeout(KEEP_ALIVE_S):
                chunk = await stream.next()
        except TimeoutError:
            chunk = b":\n\n"
        await _more(send, chunk)


async def _first_of(*awaitables: Awaitable[object]) -> None:
    """Wait until one of these is over, and cancel the others."""
    tasks = [asyncio.ensure_future(each) for each in awaitables]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _more(send: Send, chunk: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": chunk, "more_body": more})


def _json(text: str) -> Response:
    return Response(text, media_type="application/json")


def _found(document: str | None) -> Response:
    if document is None:
        return _json_sentence("There is no such thing in this cell.", 404)
    return _json(document)


def _json_sentence(sentence: str, status: int) -> Response:
    return Response(
        json.dumps({"error": sentence}), status_code=status, media_type="application/json"
    )


def _refused(_: Request, error: Exception) -> Response:
    del error  # it may name the server, which is for the log of the watcher
    return _json_sentence("The database does not answer, or refuses this: see the log.", 503)


def _missing(request: Request, _: Exception) -> Response:
    if request.url.path.startswith("/data/"):
        return _json_sentence("There is nothing here.", 404)
    return HTMLResponse("<!doctype html><title>Not here</title><p>There is no such page.", 404)
