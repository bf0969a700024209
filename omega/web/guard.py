"""What every request passes before the page answers it.

Goal     Let nobody read the cell through the page who may not, nor a foreign page in his browser.
Promise  Requests that are too long, that have U+0000 in their query, that use another method, that
         name another host than this one, or that lack the token are refused with one sentence,
         before anything is read. Every answer has strict headers. The token is compared in constant
         time, and is in no URL, no log and no cookie: the cookie holds what is derived from it.
Source   OWASP, "DNS Rebinding" and "Secure Headers"; RFC 6750; docs/decisions/0052-the-page.md.
"""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from omega.limits import LIMITS

COOKIE: Final = "omega_web"
LOGIN: Final = "/login"
OPEN_PATHS: Final = frozenset({LOGIN, "/healthz", "/static/omega.css", "/static/icon.svg"})
"""What is answered without a token."""
BEARER: Final = "bearer "
NUL: Final = b"%00"
"""Postgres has no text with it."""
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
OURS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names by which a page on a loopback address may be asked for."""


def is_loopback(host: str) -> bool:
    """Return whether an address to listen on can be reached only from this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Token:
    """The secret that opens the page."""

    def __init__(self, token: str) -> None:
        self._digest = _digest(token)
        self.cookie: Final = hmac.new(token.encode(), b"cookie of the page", "sha256").hexdigest()

    def opens(self, said: str) -> bool:
        """Return whether this is the token."""
        return hmac.compare_digest(self._digest, _digest(said))

    def is_in(self, headers: Headers) -> bool:
        """Return whether a request has the token, or the cookie that a login sets."""
        said = headers.get("authorization", "")
        if said[: len(BEARER)].lower() == BEARER and self.opens(said[len(BEARER) :].strip()):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(
            _digest(self.cookie), _digest(cookie.value)
        )


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


class Guard:
    """An application in front of the page's."""

    def __init__(
        self, app: ASGIApp, *, host: str, token: Token | None, tell: Callable[[str], None]
    ) -> None:
        """`tell` gets a line for the log if a token is wrong."""
        self._app = app
        self._host = host
        self._token = token
        self._tell = tell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        answer = self._refusal(scope) or self._app
        await answer(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        if refused_address := _refusal_of_address(scope):
            return refused_address
        path, headers = scope["path"], Headers(scope=scope)
        if self._token is None and not self._is_ours(headers.get("host", "")):
            return _says(421, "This page answers only to the address that it listens on.")
        if scope["method"] not in {"GET", "HEAD"} and (scope["method"], path) != ("POST", LOGIN):
            refused = _says(405, "The page only reads: use GET.")
            refused.headers["Allow"] = "GET, HEAD"
            return refused
        if self._token is None or path in OPEN_PATHS or self._token.is_in(headers):
            return None
        if "authorization" in headers:
            self._tell("a request with a wrong token")
        if "text/html" in headers.get("accept", ""):
            return RedirectResponse(LOGIN, status_code=303)
        return _says(401, "A token is needed: Authorization: Bearer TOKEN, or log in at /login.")

    def _is_ours(self, said: str) -> bool:
        """Return whether a Host header names this server, and not a name that leads here."""
        name, _, port = said.rpartition(":") if not said.endswith("]") else (said, "", "")
        if not name or not port.isdecimal():
            name = said
        return name.strip("[]").lower() in OURS | {self._host.lower()}


def _refusal_of_address(scope: Scope) -> Response | None:
    raw_path, query = scope.get("raw_path") or scope["path"].encode(), scope["query_string"]
    if len(raw_path) > LIMITS.web_path_max or len(query) > LIMITS.web_query_max:
        return _says(414, "The address is too long.")
    if NUL in query:
        return _says(400, "No name has the character U+0000.")
    return None


def _says(status: int, sentence: str) -> Response:
    return PlainTextResponse(sentence + "\n", status_code=status)
