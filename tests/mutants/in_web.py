"""Faults in what protects the page for operators: its token, hosts, limits and connections."""

from tests.mutants.mutant import Mutant, Part

GUARD = "omega/web/guard.py"
APP = "omega/web/app.py"
STREAMS = "omega/web/streams.py"
CONNECTIONS = "omega/web/connections.py"
SELDOM = "omega/web/seldom.py"
mutant = Part(
    "web",
    (
        "tests/unit/web/test_streams.py",
        "tests/unit/web/test_server.py",
        "tests/unit/web/test_refused_paths.py",
    ),
)
of_connections = Part(
    "web", ("tests/unit/web/test_connections.py", "tests/unit/web/test_seldom.py")
)
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
    mutant(
        "asks-for-a-name-with-nul",
        GUARD,
        "_refusal_of_address",
        "if NUL in query:",
        "if False:",
        "A visitor causes errors of the server, which the log tells as ours.",
    ),
    of_connections(
        "newcomer-is-closed",
        CONNECTIONS,
        "Connections.add",
        "self._close(«min(others, key=lambda one: one.unread > 0, default=new)»)",
        "new",
        "Whoever opens connections and says nothing shuts everybody out.",
    ),
    of_connections(
        "connections-without-number",
        CONNECTIONS,
        "Connections.add",
        "len(self._open) > self._connections_max",
        "len(self._open) < 0",
        "Connections that say nothing use up the files that the server may open.",
    ),
    of_connections(
        "request-may-take-for-ever",
        CONNECTIONS,
        "Connections.note",
        "one.loop.call_later(«self._request_s», self._end_wait, one, one.unread)",
        "1_000_000.0",
        "Connections that say nothing stay until more come than there may be.",
    ),
    of_connections(
        "answered-ones-are-closed",
        CONNECTIONS,
        "Connections.note",
        "if not one.waits:\n    «self._stop_waiting(one)»",
        "pass",
        "Browsers that watch the page live are cut off.",
    ),
    of_connections(
        "half-a-form-is-a-request",
        CONNECTIONS,
        "Connection.waits",
        "cycle is None or cycle.response_complete «or cycle.more_body»",
        "",
        "Whoever sends half of a login, often enough, shuts everybody out.",
    ),
    of_connections(
        "second-request-may-wait",
        CONNECTIONS,
        "Connection.waits",
        "cycle is None «or cycle.response_complete» or cycle.more_body",
        "",
        "Whoever asks once and keeps the connection, often enough, shuts everybody out.",
    ),
    of_connections(
        "answers-may-stay-unread",
        CONNECTIONS,
        "Connection.waits",
        "has_none «or bool(self.flow.write_paused)»",
        "",
        "Whoever asks and does not read, often enough, shuts everybody out.",
    ),
    of_connections(
        "slow-readers-are-cut-off",
        CONNECTIONS,
        "Connections._end_wait",
        "if «unread and unread - one.unread >= min(unread, TAKEN_MIN)»:",
        "False",
        "Over a slow line, the map of a large cell never arrives whole.",
    ),
    of_connections(
        "log-fills-the-disk",
        SELDOM,
        "Seldom.__call__",
        "if now_s - said_s < AGAIN_S:",
        "if now_s - said_s < 0:",
        "Whoever tries tokens fills the disk with the log.",
    ),
)
