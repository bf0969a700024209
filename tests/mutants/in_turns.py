"""Faults in the leases of turns, and in those who read by them."""

from tests.mutants.mutant import Mutant

SQL = "omega/store/postgres/functions/turns.sql"
TURNS = "omega/sync/turns.py"
PARTITIONED = "omega/sync/partitioned.py"
BY_SQL = ("tests/contract/test_postgres_store.py", "tests/attack/test_turns.py")
BY_READING = ("tests/unit/sync", "tests/property/test_leased_turns.py")


def mutant(
    name: str,
    file: str,
    function: str,
    before: str,
    after: str,
    why: str,
    *,
    borrows: tuple[str, str] | None = None,
) -> Mutant:
    """Return a mutant of turns."""
    tests = BY_SQL if file == SQL else BY_READING
    return Mutant(
        name=f"turns.{name}",
        file=file,
        function=function,
        before=before,
        after=after,
        why=why,
        tests=tests,
        borrows=borrows,
    )


MUTANTS = (
    mutant(
        "waits-for-others",
        SQL,
        "take_turn",
        "EXIT WHEN pg_try_advisory_xact_lock(hashtext('omega.turn'), 0);",
        "EXIT;",
        "A login that leaves a transaction open stops everybody's reading.",
    ),
    mutant(
        "of-different-numbers",
        SQL,
        "take_turn",
        "(t.schedulers <> take_turn.schedulers OR t.number = take_turn.number)",
        "t.number = take_turn.number",
        "While replicas come and go, two read the same parts in one round.",
    ),
    mutant(
        "late-requests-count",
        SQL,
        "take_turn",
        "IF before.asked >= _asked THEN",
        "IF false THEN",
        "A request that arrives late takes a turn from under its holder.",
    ),
    mutant(
        "the-dead-keep-theirs",
        SQL,
        "take_turn",
        "DELETE FROM turn t WHERE t.expires_at <= clock_timestamp();",
        "",
        "Once a replica has died, the others wait for its turn for ever.",
    ),
    mutant(
        "any-login",
        SQL,
        "take_turn",
        "before FROM turn t WHERE t.login = session_user AND t.holder = _holder;",
        "before FROM turn t WHERE t.holder = _holder;",
        "A login can disturb the turns of another one.",
    ),
    mutant(
        "without-end",
        SQL,
        "take_turn",
        "ELSIF before.holder IS NULL AND (SELECT",
        "ELSIF false AND (SELECT",
        "One login fills the table.",
    ),
    mutant(
        "kept-without-an-answer",
        TURNS,
        "_ask",
        "held, self._held = self._held, None",
        "held = self._held  # who",
        "A replica reads by a turn that the database has given to another.",
    ),
    mutant(
        "counted-from-the-answer",
        TURNS,
        "_ask",
        "answer, «now_s + lease_s»\n",
        "self._clock.now() + lease_s",
        "A replica reads by a turn for as long as the answer took after it was given to another.",
        borrows=(TURNS, "return self._held if self._clock.now() < self._until_s else None"),
    ),
    mutant(
        "not-given-back",
        TURNS,
        "LeasedTurns.close",
        "if self._asked:",
        "if False:",
        "After a clean end the others wait for the lease of one that is gone.",
    ),
    mutant(
        "kept-for-ever",
        TURNS,
        "held",
        "return self._held if self._clock.now() < self._until_s else None",
        "return self._held",
        "A replica that was cut off reads by a turn that another holds by now.",
    ),
    mutant(
        "shared-by-two",
        TURNS,
        "_refuse",
        'if is_over or answer.held_by != f"{sharing.kind}/{sharing.replica}":',
        "if False:",
        "Two replicas are started with one turn, and nobody says so.",
    ),
    mutant(
        "everybody-begins-with-the-same-part",
        TURNS,
        "parts_of",
        "(self.number + round_) % self.of",
        "round_ % self.of",
        "All know the same part best, and meet there.",
    ),
    mutant(
        "change-misses-rows",
        PARTITIONED,
        "_due",
        "return tuple(range(self._turn.parts))",
        "return (0,)",
        "When the turn changes, a view misses what has changed in most parts.",
    ),
)
