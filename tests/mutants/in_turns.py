"""Faults in the leases of turns, and in those who read by them."""

from tests.mutants.mutant import Mutant

SQL = "omega/store/postgres/functions/turns.sql"
TURNS = "omega/sync/turns.py"
PARTITIONED = "omega/sync/partitioned.py"
BY_SQL = ("tests/contract/test_postgres_store.py", "tests/attack/test_turns.py")
BY_READING = ("tests/unit/sync", "tests/property/test_leased_turns.py")


def mutant(name: str, file: str, before: str, after: str, why: str) -> Mutant:
    """Return a mutant of turns."""
    tests = BY_SQL if file == SQL else BY_READING
    return Mutant(name=f"turns.{name}", file=file, before=before, after=after, why=why, tests=tests)


MUTANTS = (
    mutant(
        "waits-for-others",
        SQL,
        "        EXIT WHEN pg_try_advisory_xact_lock(hashtext('omega.turn'), 0);\n",
        "        EXIT;\n",
        "A login that leaves a transaction open stops everybody's reading.",
    ),
    mutant(
        "of-different-numbers",
        SQL,
        "(t.schedulers <> take_turn.schedulers OR t.number = take_turn.number)",
        "t.number = take_turn.number",
        "While replicas come and go, two read the same parts in one round.",
    ),
    mutant(
        "late-requests-count",
        SQL,
        "    IF before.asked >= _asked THEN\n",
        "    IF false THEN\n",
        "A request that arrives late takes a turn from under its holder.",
    ),
    mutant(
        "the-dead-keep-theirs",
        SQL,
        "    DELETE FROM turn t WHERE t.expires_at <= clock_timestamp();\n",
        "",
        "Once a replica has died, the others wait for its turn for ever.",
    ),
    mutant(
        "any-login",
        SQL,
        "before FROM turn t WHERE t.login = session_user AND t.holder = _holder;\n",
        "before FROM turn t WHERE t.holder = _holder;\n",
        "A login can disturb the turns of another one.",
    ),
    mutant(
        "without-end",
        SQL,
        "    ELSIF before.holder IS NULL AND (SELECT",
        "    ELSIF false AND (SELECT",
        "One login fills the table.",
    ),
    mutant(
        "kept-without-an-answer",
        TURNS,
        "        held, self._held = self._held, None  # who",
        "        held = self._held  # who",
        "A replica reads by a turn that the database has given to another.",
    ),
    mutant(
        "counted-from-the-answer",
        TURNS,
        "answer, now_s + lease_s\n",
        "answer, self._clock.now() + lease_s\n",
        "A replica reads by a turn for as long as the answer took after it was given to another.",
    ),
    mutant(
        "not-given-back",
        TURNS,
        "        if self._asked:\n",
        "        if False:\n",
        "After a clean end the others wait for the lease of one that is gone.",
    ),
    mutant(
        "kept-for-ever",
        TURNS,
        "        return self._held if self._clock.now() < self._until_s else None\n",
        "        return self._held\n",
        "A replica that was cut off reads by a turn that another holds by now.",
    ),
    mutant(
        "shared-by-two",
        TURNS,
        '        if is_over or answer.held_by != f"{sharing.kind}/{sharing.replica}":\n',
        "        if False:\n",
        "Two replicas are started with one turn, and nobody says so.",
    ),
    mutant(
        "everybody-begins-with-the-same-part",
        TURNS,
        "(self.number + round_) % self.of",
        "round_ % self.of",
        "All know the same part best, and meet there.",
    ),
    mutant(
        "change-misses-rows",
        PARTITIONED,
        "            return tuple(range(self._turn.parts))\n",
        "            return (0,)\n",
        "When the turn changes, a view misses what has changed in most parts.",
    ),
)
