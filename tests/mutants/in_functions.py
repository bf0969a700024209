"""Faults in the other functions in Postgres: ends, the queue, machines."""

from tests.mutants.mutant import Part

FUNCTIONS = "omega/store/postgres/functions"
TASKS = f"{FUNCTIONS}/tasks.sql"
QUEUE = f"{FUNCTIONS}/queue.sql"
FORCE = f"{FUNCTIONS}/forced_eviction.sql"
MACHINES = f"{FUNCTIONS}/machines.sql"
READING = f"{FUNCTIONS}/reading.sql"
OF_LOCKS = (
    "tests/postgres/test_lock_order.py",
    "tests/postgres/test_waiting_calls.py",
    "tests/postgres/test_concurrency.py",
)
OF_DELTAS = ("tests/postgres/test_deltas.py", "tests/postgres/test_concurrency.py")
OF_STORES = ("tests/contract/test_postgres_store.py", "tests/postgres/test_histories.py")
mutant = Part("sql", OF_STORES + OF_LOCKS)
ENDS = (
    mutant(
        "ends-lock-no-jobs",
        TASKS,
        "release_tasks",
        "c.parent = ANY (_jobs) AND c.finished_at IS NULL)) ORDER BY id «FOR NO KEY UPDATE») AS l;",
        "",
        "Ends and commits wait for each other until one of them is aborted.",
        tests=OF_LOCKS + OF_STORES,
    ),
    mutant(
        "ends-lock-machines-downwards",
        TASKS,
        "release_tasks",
        "JOIN allocation a USING (job_id, task)) ORDER BY id FOR",
        "JOIN allocation a USING (job_id, task)) ORDER BY id DESC FOR",
        "Ends and commits wait for each other until one of them is aborted.",
        tests=OF_LOCKS + OF_STORES,
    ),
    mutant(
        "end-of-another-allocation",
        TASKS,
        "release_tasks",
        "w.started_ms = (extract(epoch FROM a.started_at) * 1000)::bigint",
        "true",
        "A node that comes late ends what was placed anew since.",
    ),
    mutant(
        "end-leaves-the-revision",
        TASKS,
        "release_tasks",
        "revision = m.revision + 1,",
        "revision = m.revision,",
        "Views throw away the row that tells of freed room.",
    ),
    mutant(
        "end-raises-the-sequence",
        TASKS,
        "release_tasks",
        "«revision = m.revision + 1», changed_by = pg_current_xact_id()",
        "revision = m.revision + 1, sequence = m.sequence + 1",
        "Every completion makes somebody's claim stale.",
        borrows=(
            "omega/store/postgres/functions/grant_plainly.sql",
            "sequence = m.sequence + 1, revision = m.revision + 1",
        ),
    ),
    mutant(
        "end-missed-by-deltas",
        TASKS,
        "release_tasks",
        "revision = m.revision + 1, changed_by = «pg_current_xact_id()»",
        "m.changed_by",
        "A view that was away for long never learns of freed room.",
        tests=OF_DELTAS,
    ),
    mutant(
        "end-not-on-record",
        TASKS,
        "release_tasks",
        "array_agg(DISTINCT machine_id) FROM ended HAVING count(*) > 0",
        "array_agg(DISTINCT machine_id) FROM ended HAVING count(*) < 0",
        "Views that live on deltas never learn of freed room.",
    ),
)

LEASES = (
    mutant(
        "expired-lease-kept",
        QUEUE,
        "rescue_jobs",
        "WITH expired AS MATERIALIZED (SELECT id FROM job WHERE state = 'planning' AND "
        "lease_expires_at <= «clock_timestamp()»",
        "clock_timestamp() - interval '1 day'",
        "The jobs of a dead scheduler wait for ever.",
    ),
    mutant(
        "live-lease-taken",
        QUEUE,
        "rescue_jobs",
        "WITH expired AS MATERIALIZED (SELECT id FROM job WHERE state = 'planning' AND "
        "lease_expires_at <= «clock_timestamp()»",
        "clock_timestamp() + interval '1 day'",
        "Jobs are taken from schedulers that are at work on them.",
    ),
    mutant(
        "lease-renewed-by-others",
        QUEUE,
        "renew_leases",
        "WHERE j.id = w.id AND j.lease_token = w.token RETURNING j.id",
        "WHERE j.id = w.id RETURNING j.id",
        "Who has lost a lease keeps its new holder's alive, and believes it is its own.",
    ),
    mutant(
        "job-leased-to-two",
        QUEUE,
        "lease_jobs",
        "ORDER BY precedence DESC, id LIMIT at_most(_jobs_max) «FOR NO KEY UPDATE SKIP LOCKED»",
        "",
        "Two schedulers plan one job, and one of them in vain.",
        tests=OF_LOCKS + OF_STORES,
    ),
    mutant(
        "park-locks-downwards",
        QUEUE,
        "park_jobs",
        "ORDER BY id «FOR» NO KEY UPDATE; UPDATE job j SET state = CASE WHEN "
        "isempty(j.unplaced) THEN 'running' ELSE 'parked' END, lease_token = NULL, "
        "park_reason = CASE",
        "DESC FOR",
        "Schedulers wait for each other until one of them is aborted.",
        tests=OF_LOCKS + OF_STORES,
    ),
)

BY_FORCE = (
    mutant(
        "cut-gang-whose-others-stay",
        FORCE,
        "force_end",
        "j.placed - n.tasks < j.minimum",
        "j.placed - n.tasks < 0",
        "What is left of a gang holds its machines and does nothing.",
    ),
    mutant(
        "lost-tasks-missed-by-deltas",
        FORCE,
        "force_end",
        "revision = m.revision + 1, changed_by = «pg_current_xact_id()»",
        "m.changed_by",
        "A view that was away for long never learns of freed room.",
        tests=OF_DELTAS,
    ),
    mutant(
        "lost-tasks-not-on-record",
        FORCE,
        "force_end",
        "array_agg(DISTINCT machine_id) FROM ended HAVING count(*) > 0",
        "array_agg(DISTINCT machine_id) FROM ended HAVING count(*) < 0",
        "Views that live on deltas never learn of freed room.",
    ),
    mutant(
        "force-locks-machines-downwards",
        FORCE,
        "force_end",
        "JOIN allocation a USING (job_id, task)) ORDER BY id FOR",
        "JOIN allocation a USING (job_id, task)) ORDER BY id DESC FOR",
        "Losses and commits wait for each other until one of them is aborted.",
        tests=OF_LOCKS + OF_STORES,
    ),
    mutant(
        "draining-machine-loses-its-tasks",
        FORCE,
        "lose_tasks",
        "m.state IN (2, 3)",
        "m.state IN (1, 2, 3)",
        "A drain ends what it was to let finish.",
    ),
    mutant(
        "notice-ends-the-highest-first",
        FORCE,
        "enforce_notice",
        "(ORDER BY j.precedence, (extract",
        "(ORDER BY j.precedence DESC, (extract",
        "A shrinking machine ends what matters most.",
    ),
    mutant(
        "notice-not-waited-for",
        FORCE,
        "enforce_notice",
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
        "resize_machine",
        "SET {{ ${kind}_capacity = «_capacity[${number}]» }}, notice = CASE WHEN {{ "
        "m.${kind}_used > _capacity",
        "greatest(_capacity[${number}], m.${kind}_used)",
        "A machine that shrinks takes claims above its new limit.",
    ),
    mutant(
        "state-leaves-the-sequence",
        MACHINES,
        "move_machines",
        "SET state = _state, sequence = sequence + 1,",
        "SET state = _state,",
        "A claim from before a drain and an undrain passes for a fresh one.",
    ),
    mutant(
        "state-missed-by-deltas",
        MACHINES,
        "move_machines",
        "revision = revision + 1, changed_by = pg_current_xact_id() WHERE id = ANY",
        "revision = revision + 1 WHERE id = ANY",
        "Whoever was away for long goes on claiming on a machine that is down.",
        tests=OF_DELTAS,
    ),
    mutant(
        "state-not-on-record",
        MACHINES,
        "move_machines",
        "array_agg(id) FROM moved HAVING count(*) > 0",
        "array_agg(id) FROM moved HAVING count(*) < 0",
        "Schedulers go on claiming on a machine that is down.",
    ),
    mutant(
        "resize-not-on-record",
        MACHINES,
        "resize_machine",
        "INSERT INTO machine_change (machines) VALUES (ARRAY[_machine]);",
        "",
        "Schedulers go on claiming what a machine no longer has.",
    ),
    mutant(
        "gone-machine-comes-back",
        MACHINES,
        "move_machines",
        "state NOT IN (3, _state)",
        "state <> _state",
        "A machine that has left takes claims again.",
    ),
)

YIELDING = (
    mutant(
        "change-of-gap-unnoticed",
        MACHINES,
        "set_precedence_gap",
        "SET precedence_gap = _gap«, generation = generation + 1» WHERE",
        "",
        "The owner lowers the gap, and nobody is woken.",
        tests=OF_STORES,
    ),
    mutant(
        "what-stays-counted-as-yielding",
        READING,
        "read_yielding",
        "j.precedence <= highest «AND j.preemptible» AND",
        "",
        "Jobs are woken again and again for tasks that may not be evicted.",
        tests=OF_STORES,
    ),
    mutant(
        "gap-not-counted-in-what-yields",
        READING,
        "read_yielding",
        "_precedence::bigint - c.precedence_gap",
        "_precedence::bigint",
        "Jobs are woken again and again for tasks that do not yield to them.",
        tests=OF_STORES,
    ),
)

MUTANTS = (*ENDS, *LEASES, *BY_FORCE, *CHANGES, *YIELDING)
