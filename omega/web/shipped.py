"""The files of the page that lie in the package: one shell, styles, scripts.

Goal     Serve the page without a build step, and without any file from elsewhere.
Promise  Only the files of the folder `static` are served, read once. A browser asks again whether
         they have changed, which a new version of the program may have done.
Source   docs/decisions/0052-the-page.md.
"""

import hashlib
from importlib.resources import files
from typing import Final

from starlette.responses import PlainTextResponse, Response

TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
MESSAGE: Final = "<!--message-->"
"""In login.html, where a sentence of ours goes."""


class Shipped:
    """The files, by name."""

    def __init__(self) -> None:
        folder = files("omega.web").joinpath("static")
        self._files = {
            it.name: it.read_bytes()
            for it in folder.iterdir()
            if "." + it.name.rpartition(".")[2] in TYPES
        }
        self._tags = {
            name: f'"{hashlib.sha256(body).hexdigest()[:32]}"' for name, body in self._files.items()
        }

    def answer(self, name: str, *, known: str | None = None) -> Response:
        """Return a file; nothing but its tag to a browser that has it already."""
        if name not in self._files:
            return PlainTextResponse("There is no such file.\n", status_code=404)
        headers = {"ETag": self._tags[name], "Cache-Control": "no-cache"}
        if known == self._tags[name]:
            return Response(status_code=304, headers=headers)
        kind = TYPES["." + name.rpartition(".")[2]]
        return Response(self._files[name], media_type=kind, headers=headers)

    def login(self, sentence: str, *, status: int = 200) -> Response:
        """Return the form that asks for the token, with a sentence of ours."""
        shown = f'<p role="alert">{sentence}</p>' if sentence else ""
        page = self._files["login.html"].decode().replace(MESSAGE, shown)
        return Response(page, status_code=status, media_type=TYPES[".html"])
