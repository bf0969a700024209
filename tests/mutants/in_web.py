"""Faults in what protects the page for operators: its token, its hosts and its limits."""

from tests.mutants.mutant import Mutant, Part

GUARD = "omega/web/guard.py"
APP = "omega/web/app.py"
STREAMS = "omega/web/streams.py"
mutant = Part("web", ("tests/unit/web/test_streams.py", "tests/unit/web/test_server.py"))
MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "cookie-is-the-token",
        GUARD,
        "Token",
        'Final = «hmac.new(token.encode(), b"cookie of the page", "sha256").hexdigest()»',
        "token",
        "Whoever reads a browser's cookies has the token for good.",
    ),
    mutant(
        "page-of-a-strangers-name",
        GUARD,
        "Guard._is_ours",
        """return name.strip("[]").lower() in OURS | {self._host.lower()}""",
        """return bool(name.strip("[]"))""",
        "A foreign page whose name leads here reads the cell in an operator's browser.",
    ),
    mutant(
        "no-address-needs-a-token",
        GUARD,
        "is_loopback",
        "return ip_address(host).is_loopback",
        "return bool(ip_address(host))",
        "Everybody who reaches the machine reads the cell.",
    ),
    mutant(
        "metrics-without-a-token",
        GUARD,
        "",
        """OPEN_PATHS: Final = frozenset({LOGIN, "/healthz",""",
        """OPEN_PATHS: Final = frozenset({LOGIN, "/healthz", "/metrics",""",
        "The names of tenants and schedulers are told without the token.",
    ),
    mutant(
        "form-of-any-length",
        APP,
        "Page._login",
        "if len(body) > LOGIN_BYTES_MAX:",
        "if len(body) < 0:",
        "Whoever has no token fills the server's memory.",
    ),
    mutant(
        "answer-names-the-database",
        APP,
        "_refused",
        'del error\nreturn _json_sentence("...", 503)',
        "return _json_sentence(str(error), 503)",
        "A browser is told where the database is, and as whom it is read.",
    ),
    mutant(
        "one-stream-too-many",
        STREAMS,
        "Streams.open",
        "if len(self._open) >= self._streams_max:",
        "if len(self._open) > self._streams_max:",
        "More browsers are served than the limit says.",
    ),
    mutant(
        "stream-that-ended-is-counted",
        APP,
        "Page._stream",
        "finally:\n    «self._streams.forget(stream)»",
        "pass",
        "After a hundred visits nobody sees the page live until it is started anew.",
    ),
    mutant(
        "slow-reader-fills-the-memory",
        STREAMS,
        "Stream",
        "self._chunks: asyncio.Queue[bytes] = asyncio.Queue(«chunks_max»)",
        "0",
        "A browser that does not read holds all updates of a day in the server's memory.",
    ),
)
