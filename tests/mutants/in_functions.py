"""Faults in the other functions in Postgres: ends, the queue, machines, reads of views."""

from tests.mutants.mutant import Mutant

FUNCTIONS = "omega/store/postgres/functions"
READING = f"{FUNCTIONS}/reading.sql"
TASKS = f"{FUNCTIONS}/tasks.sql"
QUEUE = f"{FUNCTIONS}/queue.sql"
FORCE = f"{FUNCTIONS}/forced_eviction.sql"
MACHINES = f"{FUNCTIONS}/machines.sql"
OF_LOCKS = (
    "tests/postgres/test_lock_order.py",
    "tests/postgres/test_waiting_calls.py",
    "tests/postgres/test_concurrency.py",
)
OF_DELTAS = ("tests/postgres/test_deltas.py", "tests/postgres/test_concurrency.py")
OF_STORES = ("tests/contract/test_postgres_store.py", "tests/postgres/test_histories.py")


def mutant(
    name: str,
    file: str,
    before: str,
    after: str,
    why: str,
    *,
    tests: tuple[str, ...] = OF_STORES + OF_LOCKS,
) -> Mutant:
    """Return a mutant of a function."""
    return Mutant(name=f"sql.{name}", file=file, before=before, after=after, why=why, tests=tests)


VIEWS = (
    mutant(
        "mark-too-late",
        READING,
        "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, c.generation,\n"
        "           coalesce(CASE",
        "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, c.generation,\n"
        "           coalesce(CASE",
        "A delta misses for good what was under way when the last one was read.",
        tests=OF_LOCKS + OF_STORES,
    ),
    mutant(
        "first-change-after-the-mark-missed",
        READING,
        "m.changed_by >= since",
        "m.changed_by > since",
        "A delta misses for good what was under way when the last one was read.",
        tests=OF_DELTAS,
    ),
    mutant(
        "first-commit-after-the-mark-missed",
        READING,
        "t.changed_by >= since",
        "t.changed_by > since",
        "A delta misses for good what was under way when the last one was read.",
        tests=OF_DELTAS,
    ),
    mutant(
        "first-record-after-the-mark-missed",
        READING,
        "o.changed_by >= since",
        "o.changed_by > since",
        "A delta misses for good what was under way when the last one was read.",
        tests=OF_DELTAS,
    ),
    mutant(
        "evictions-missed-by-deltas",
        READING,
        "unnest(t.machines || t.evicted_machines)",
        "unnest(t.machines)",
        "Views that live on deltas never learn of the room that an eviction left.",
    ),
    mutant(
        "too-many-changes-cut-off",
        READING,
        "AND cardinality(n.ids) < n.enough",
        "",
        "After a pause a view misses for good the changes beyond the first few hundred.",
        tests=OF_DELTAS,
    ),
    mutant(
        "records-that-are-gone-relied-on",
        READING,
        "since >= c.changes_from AND ",
        "",
        "Who was away while history was pruned never learns what changed meanwhile.",
        tests=OF_DELTAS,
    ),
    mutant(
        "other-parts-looked-up",
        READING,
        "WHERE _of = 1 OR omega.part_of(c.id, _of) = ANY (_parts)\n                      LIMIT",
        "LIMIT",
        "Who goes by turns learns of every part at once, like everybody else.",
        tests=OF_DELTAS + OF_STORES,
    ),
    mutant(
        "other-parts-scanned",
        READING,
        " AND (_of = 1 OR omega.part_of(m.id, _of) = ANY (_parts))",
        "",
        "Who goes by turns learns of every part at once, like everybody else.",
        tests=OF_DELTAS,
    ),
    mutant(
        "parts-divided-otherwise",
        READING,
        "& 4294967295) >> 16) % _of",
        "& 4294967295) >> 15) % _of",
        "What schedulers take for a part of the cell is not what the database takes for it.",
        tests=("tests/postgres/test_partition.py",),
    ),
    mutant(
        "pieces-leave-out-pages",
        READING,
        "page + 64)::tid), ''::bytea)",
        "page + 63)::tid), ''::bytea)",
        "Views lack the machines of every 64th page.",
        tests=("tests/postgres/test_packing.py",),
    ),
)

TURNS = tuple(
    Mutant(
        name=f"sync.{name}",
        file="omega/sync/partitioned.py",
        before=before,
        after=after,
        why=why,
        tests=("tests/unit/sync",),
    )
    for name, before, after, why in (
        (
            "one-mark-for-all-parts",
            "min(self._marks[part] for part in due)",
            "max(self._marks)",
            "What changed in a part between its turns is missed for good.",
        ),
        (
            "missed-rounds-left-out",
            "max(self._round + 1, now - turn.of + 1)",
            "now",
            "A part whose turn fell into a long decision is older than the gap.",
        ),
        (
            "rounds-by-the-own-clock",
            "ahead_s = self._store.now_ms() / MS_PER_S - self._stopwatch.now()",
            "ahead_s = 0.0",
            "Schedulers on two machines read the same part in the same round.",
        ),
    )
)

ENDS = (
    mutant(
        "ends-lock-no-jobs",
        TASKS,
        "PERFORM 1 FROM job WHERE id = ANY (_jobs) ORDER BY id FOR NO KEY UPDATE;",
        "",
        "Ends and commits wait for each other until one of them is aborted.",
        tests=OF_LOCKS + OF_STORES,
    ),
    mutant(
        "ends-lock-machines-downwards",
        TASKS,
        "JOIN allocation a USING (job_id, task))\n      ORDER BY id FOR",
        "JOIN allocation a USING (job_id, task))\n      ORDER BY id DESC FOR",
        "Ends and commits wait for each other until one of them is aborted.",
        tests=OF_LOCKS + OF_STORES,
    ),
    mutant(
        "end-of-another-allocation",
        TASKS,
        "w.started_ms = (extract(epoch FROM a.started_at) * 1000)::bigint",
        "true",
        "A node that comes late ends what was placed anew since.",
    ),
    mutant(
        "end-leaves-the-revision",
        TASKS,
        "revision = m.revision + 1,",
        "revision = m.revision,",
        "Views throw away the row that tells of freed room.",
    ),
    mutant(
        "end-raises-the-sequence",
        TASKS,
        "revision = m.revision + 1,",
        "revision = m.revision + 1, sequence = m.sequence + 1,",
        "Every completion makes somebody's claim stale.",
    ),
    mutant(
        "end-missed-by-deltas",
        TASKS,
        "changed_by = pg_current_xact_id()",
        "changed_by = m.changed_by",
        "A view that was away for long never learns of freed room.",
        tests=OF_DELTAS,
    ),
    mutant(
        "end-not-on-record",
        TASKS,
        "array_agg(DISTINCT machine_id) FROM ended HAVING count(*) > 0",
        "array_agg(DISTINCT machine_id) FROM ended HAVING count(*) < 0",
        "Views that live on deltas never learn of freed room.",
    ),
)

LEASES = (
    mutant(
        "expired-lease-kept",
        QUEUE,
        "AND lease_expires_at <= clock_timestamp()",
        "AND lease_expires_at <= clock_timestamp() - interval '1 day'",
        "The jobs of a dead scheduler wait for ever.",
    ),
    mutant(
        "live-lease-taken",
        QUEUE,
        "AND lease_expires_at <= clock_timestamp()",
        "AND lease_expires_at <= clock_timestamp() + interval '1 day'",
        "Jobs are taken from schedulers that are at work on them.",
    ),
    mutant(
        "lease-renewed-by-others",
        QUEUE,
        "WHERE j.id = w.id AND j.lease_token = w.token\n        RETURNING j.id",
        "WHERE j.id = w.id\n        RETURNING j.id",
        "Who has lost a lease keeps its new holder's alive, and believes it is its own.",
    ),
    mutant(
        "job-leased-to-two",
        QUEUE,
        " FOR NO KEY UPDATE SKIP LOCKED) AS j\n",
        ") AS j\n",
        "Two schedulers plan one job, and one of them in vain.",
        tests=OF_LOCKS + OF_STORES,
    ),
    mutant(
        "park-locks-downwards",
        QUEUE,
        "ORDER BY id FOR NO KEY UPDATE;\n    UPDATE job j\n"
        "       SET state = CASE WHEN isempty(j.unplaced) THEN 'running' ELSE 'parked'",
        "ORDER BY id DESC FOR NO KEY UPDATE;\n    UPDATE job j\n"
        "       SET state = CASE WHEN isempty(j.unplaced) THEN 'running' ELSE 'parked'",
        "Schedulers wait for each other until one of them is aborted.",
        tests=OF_LOCKS + OF_STORES,
    ),
)

BY_FORCE = (
    mutant(
        "cut-gang-whose-others-stay",
        FORCE,
        "j.placed - n.tasks < j.minimum",
        "j.placed - n.tasks < 0",
        "What is left of a gang holds its machines and does nothing.",
    ),
    mutant(
        "lost-tasks-missed-by-deltas",
        FORCE,
        "changed_by = pg_current_xact_id()",
        "changed_by = m.changed_by",
        "A view that was away for long never learns of freed room.",
        tests=OF_DELTAS,
    ),
    mutant(
        "lost-tasks-not-on-record",
        FORCE,
        "array_agg(DISTINCT machine_id) FROM ended HAVING count(*) > 0",
        "array_agg(DISTINCT machine_id) FROM ended HAVING count(*) < 0",
        "Views that live on deltas never learn of freed room.",
    ),
    mutant(
        "force-locks-machines-downwards",
        FORCE,
        "JOIN allocation a USING (job_id, task))\n      ORDER BY id FOR",
        "JOIN allocation a USING (job_id, task))\n      ORDER BY id DESC FOR",
        "Losses and commits wait for each other until one of them is aborted.",
        tests=OF_LOCKS + OF_STORES,
    ),
    mutant(
        "draining-machine-loses-its-tasks",
        FORCE,
        "m.state IN (2, 3)",
        "m.state IN (1, 2, 3)",
        "A drain ends what it was to let finish.",
    ),
    mutant(
        "notice-ends-the-highest-first",
        FORCE,
        "(ORDER BY j.precedence, (extract",
        "(ORDER BY j.precedence DESC, (extract",
        "A shrinking machine ends what matters most.",
    ),
    mutant(
        "notice-not-waited-for",
        FORCE,
        "WHERE m.id = _machine AND m.notice_ends_at <= clock_timestamp()",
        "WHERE m.id = _machine AND m.notice_ends_at IS NOT NULL",
        "Tasks are ended while they still have time to finish.",
        tests=("tests/postgres/test_notices.py", *OF_STORES),
    ),
)

CHANGES = (
    mutant(
        "resize-sells-what-is-in-use",
        MACHINES,
        "{{ ${kind}_capacity = _capacity[${number}] }}",
        "{{ ${kind}_capacity = greatest(_capacity[${number}], m.${kind}_used) }}",
        "A machine that shrinks takes claims above its new limit.",
    ),
    mutant(
        "state-leaves-the-sequence",
        MACHINES,
        "SET state = _state, sequence = sequence + 1,",
        "SET state = _state,",
        "A claim from before a drain and an undrain passes for a fresh one.",
    ),
    mutant(
        "state-missed-by-deltas",
        MACHINES,
        "revision = revision + 1, changed_by = pg_current_xact_id()\n         WHERE id = ANY",
        "revision = revision + 1\n         WHERE id = ANY",
        "Whoever was away for long goes on claiming on a machine that is down.",
        tests=OF_DELTAS,
    ),
    mutant(
        "state-not-on-record",
        MACHINES,
        "array_agg(id) FROM moved HAVING count(*) > 0",
        "array_agg(id) FROM moved HAVING count(*) < 0",
        "Schedulers go on claiming on a machine that is down.",
    ),
    mutant(
        "resize-not-on-record",
        MACHINES,
        "INSERT INTO machine_change (machines) VALUES (ARRAY[_machine]);",
        "",
        "Schedulers go on claiming what a machine no longer has.",
    ),
    mutant(
        "gone-machine-comes-back",
        MACHINES,
        "state NOT IN (3, _state)",
        "state <> _state",
        "A machine that has left takes claims again.",
    ),
)

MUTANTS = (*VIEWS, *ENDS, *LEASES, *BY_FORCE, *CHANGES, *TURNS)
