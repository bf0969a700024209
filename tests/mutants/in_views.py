"""Faults in reads of views: what Postgres answers, and who reads by turns."""

from tests.mutants.in_functions import FUNCTIONS, OF_DELTAS, OF_LOCKS, OF_STORES, mutant
from tests.mutants.mutant import Mutant

READING = f"{FUNCTIONS}/reading.sql"
BY_TURNS = "omega/sync/partitioned.py"


def of_reading_by_turns(
    name: str, file: str, function: str, before: str, after: str, why: str
) -> Mutant:
    """Return a mutant of those who read by turns."""
    tests = ("tests/unit/sync",)
    return Mutant(
        name=f"sync.{name}",
        file=file,
        function=function,
        before=before,
        after=after,
        why=why,
        tests=tests,
    )


VIEWS = (
    mutant(
        "mark-too-late",
        READING,
        "read_changes",
        "SELECT «pg_snapshot_xmin»(pg_current_snapshot())::text::bigint, c.generation,"
        " c.changes_from",
        "pg_snapshot_xmax",
        "A delta misses for good what was under way when the last one was read.",
        tests=OF_LOCKS + OF_STORES,
    ),
    mutant(
        "first-change-after-the-mark-missed",
        READING,
        "read_changes",
        "FROM machine m WHERE m.changed_by «>=» since AND (",
        ">",
        "A delta misses for good what was under way when the last one was read.",
        tests=OF_DELTAS,
    ),
    mutant(
        "first-commit-after-the-mark-missed",
        READING,
        "read_changes",
        "FROM transaction t WHERE t.changed_by «>=» since UNION",
        ">",
        "A delta misses for good what was under way when the last one was read.",
        tests=OF_DELTAS,
    ),
    mutant(
        "first-record-after-the-mark-missed",
        READING,
        "read_changes",
        "FROM machine_change o WHERE o.changed_by «>=» since) AS c",
        ">",
        "A delta misses for good what was under way when the last one was read.",
        tests=OF_DELTAS,
    ),
    mutant(
        "evictions-missed-by-deltas",
        READING,
        "read_changes",
        "unnest(t.machines || t.evicted_machines)",
        "unnest(t.machines)",
        "Views that live on deltas never learn of the room that an eviction left.",
    ),
    mutant(
        "too-many-changes-cut-off",
        READING,
        "read_changes",
        "AND cardinality(named) < enough",
        "",
        "After a pause a view misses for good the changes beyond the first few hundred.",
        tests=OF_DELTAS,
    ),
    mutant(
        "records-that-are-gone-relied-on",
        READING,
        "read_changes",
        "IF («since >= recorded_from AND» cardinality(",
        "",
        "Who was away while history was pruned never learns what changed meanwhile.",
        tests=OF_DELTAS,
    ),
    mutant(
        "other-parts-looked-up",
        READING,
        "read_changes",
        "WHERE _of = 1 OR omega.part_of(c.id, _of) = ANY (_parts) LIMIT",
        "LIMIT",
        "Who goes by turns learns of every part at once, like everybody else.",
        tests=OF_DELTAS + OF_STORES,
    ),
    mutant(
        "other-parts-scanned",
        READING,
        "read_changes",
        "AND (_of = 1 OR omega.part_of(m.id, _of) = ANY (_parts))",
        "",
        "Who goes by turns learns of every part at once, like everybody else.",
        tests=OF_DELTAS,
    ),
    mutant(
        "parts-divided-otherwise",
        READING,
        "part_of",
        "& 4294967295) >> 16) % _of",
        "& 4294967295) >> 15) % _of",
        "What schedulers take for a part of the cell is not what the database takes for it.",
        tests=("tests/postgres/test_partition.py",),
    ),
    mutant(
        "pieces-leave-out-pages",
        READING,
        "read_machines",
        "page + 64)::tid), ''::bytea)",
        "page + 63)::tid), ''::bytea)",
        "Views lack the machines of every 64th page.",
        tests=("tests/postgres/test_packing.py",),
    ),
)

TURNS = (
    of_reading_by_turns(
        "one-mark-for-all-parts",
        BY_TURNS,
        "refresh",
        "min(self._marks[part] for part in due)",
        "max(self._marks)",
        "What changed in a part between its turns is missed for good.",
    ),
    of_reading_by_turns(
        "missed-rounds-left-out",
        BY_TURNS,
        "_due",
        "max(self._round + 1, now - turn.of + 1)",
        "now",
        "A part whose turn fell into a long decision is older than the gap.",
    ),
    of_reading_by_turns(
        "rounds-by-the-own-clock",
        BY_TURNS,
        "_read_all",
        "ahead_s = self._store.now_ms() / MS_PER_S - self._stopwatch.now()",
        "ahead_s = 0.0",
        "Schedulers on two machines read the same part in the same round.",
    ),
)

MUTANTS = (*VIEWS, *TURNS)
