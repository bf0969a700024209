"""Faults in what is refused to a login that means harm, or bounded."""

from tests.mutants.mutant import Mutant, Part

FUNCTIONS = "omega/store/postgres/functions"
ARGUMENTS = f"{FUNCTIONS}/arguments.sql"
SPECS = f"{FUNCTIONS}/specs.sql"
QUEUE = f"{FUNCTIONS}/queue.sql"
ROUNDS = f"{FUNCTIONS}/rounds.sql"
REGISTRY = f"{FUNCTIONS}/registry.sql"
FORCE = f"{FUNCTIONS}/forced_eviction.sql"
HISTORY = f"{FUNCTIONS}/history.sql"
NODES = f"{FUNCTIONS}/nodes.sql"
COMMIT = f"{FUNCTIONS}/commit_claims.sql"
AMOUNTS = f"{FUNCTIONS}/verify_amounts.sql"
ARGUMENTS_REFUSED = (
    "tests/postgres/test_refused_arguments.py",
    "tests/attack/test_refused_jobs.py",
    "tests/attack/test_refused_text.py",
)
OF_ISOLATION = ("tests/attack/test_isolation.py",)
OF_LEASES = ("tests/attack/test_leases.py", "tests/attack/test_refused_text.py")
OF_MACHINES = ("tests/attack/test_machines_reopened.py",)
OF_LOCKS = ("tests/attack/test_locks.py", "tests/attack/test_passed_over.py")
mutant = Part("refusal", ARGUMENTS_REFUSED)
WIRE = (
    mutant(
        "unknown-field-of-a-job",
        SPECS,
        "problem_with_job",
        "ELSIF «NOT has_only(_spec, '...')» THEN",
        "false",
        "A field of any depth ends every scheduler that leases the job.",
    ),
    mutant(
        "unknown-field-of-a-group",
        SPECS,
        "is_group",
        "omega.has_only(_it, '...') «AND» omega.is_whole(_it -> 'tasks', 1,",
        "IS NOT NULL AND",
        "A field of any depth ends every scheduler that leases the job.",
    ),
    mutant(
        "unknown-field-of-a-constraint",
        SPECS,
        "is_constraint",
        "«omega.has_only(_it, '...')» AND omega.is_name(_it -> 'attribute') AND "
        "omega.are_names(_it -> 'values', ${values_per_constraint_max})",
        "true",
        "A field of any depth ends every scheduler that leases the job.",
    ),
    mutant(
        "unknown-field-of-work",
        SPECS,
        "is_step_work",
        "«omega.has_only(_it, '...')» AND omega.is_name(_it -> 'kind') AND "
        "omega.is_whole(_it -> 'steps', 1,",
        "true",
        "A field of any depth ends every scheduler that leases the job.",
    ),
    mutant(
        "wire-of-any-length",
        SPECS,
        "problem_with_job",
        "CASE WHEN octet_length(_spec::text) > ${wire_bytes_max} THEN",
        "CASE WHEN false THEN",
        "A few jobs fill the memory of every scheduler of their kind.",
    ),
    mutant(
        "any-number-of-values",
        ARGUMENTS,
        "are_names",
        "WHEN jsonb_array_length(_value) > _length_max THEN false",
        "WHEN false THEN false",
        "A constraint is compared with more values than there are machines.",
    ),
    mutant(
        "values-of-any-characters",
        ARGUMENTS,
        "are_names",
        "AS e (it) WHERE NOT omega.is_name(e.it)) END",
        "AS e (it) WHERE jsonb_typeof(e.it) <> 'string') END",
        "The value of a constraint moves the cursor of whoever asks why a job waits.",
    ),
    mutant(
        "lease-of-any-bytes",
        QUEUE,
        "lease_jobs",
        "(WHERE t.large = 0 OR t.bytes <= ${lease_bytes_max} OR t.bytes = t.large) INTO",
        "(WHERE true) INTO",
        "One lease fills the memory of a scheduler.",
        tests=OF_LEASES,
    ),
    mutant(
        "large-job-never-leased",
        QUEUE,
        "lease_jobs",
        "(WHERE t.large = 0 OR t.bytes <= ${lease_bytes_max} OR t.bytes = t.large) INTO",
        "(WHERE t.bytes < 0) INTO",
        "Nothing is leased.",
        tests=("tests/contract/test_postgres_store.py",),
    ),
    mutant(
        "small-jobs-counted",
        ARGUMENTS,
        "counted_bytes",
        "CASE WHEN _wire_bytes > ${wire_bytes_small} THEN _wire_bytes ELSE 0 END",
        "_wire_bytes",
        "A few large jobs that are never placed hide all others.",
        tests=OF_LEASES,
    ),
    mutant(
        "recall-of-any-bytes",
        ROUNDS,
        "recall_jobs",
        "(WHERE t.large = 0 OR t.bytes <= ${lease_bytes_max} OR t.bytes = t.large) INTO",
        "(WHERE true) INTO",
        "A round that recalls what runs fills the memory of a scheduler.",
        tests=OF_LEASES,
    ),
    mutant(
        "work-measured-before-it-is-read",
        SPECS,
        "problem_with_job",
        "«IF» NOT coalesce(is_step_work(_spec -> 'work'), false) THEN",
        "IF octet_length(_spec::text) > ${wire_bytes_max} THEN RETURN 'long'; ELSIF",
        "A submission of some bytes has its backend write gigabytes.",
        tests=("tests/attack/test_refused_jobs.py",),
        borrows=(SPECS, "octet_length(_spec::text) > ${wire_bytes_max}"),
    ),
    mutant(
        "parked-of-any-bytes",
        QUEUE,
        "parked_jobs",
        "WHERE «j.large = 0 OR j.bytes <= ${lease_bytes_max} OR j.bytes = j.large» ORDER BY",
        "true",
        "Parked jobs fill the memory of every scheduler that looks after them.",
        tests=OF_LEASES,
    ),
)
JSON = (
    mutant(
        "facts-of-any-depth",
        ARGUMENTS,
        "is_readable",
        "jsonb_path_exists(_value, 'strict $.**{«${json_depth_max}»} ? (@.type() == "
        '"array" || @.type() == "object")\')',
        "5000",
        "One report ends `omega status` for everybody.",
    ),
    mutant(
        "numbers-of-any-size",
        ARGUMENTS,
        "is_readable",
        "abs(n.it::numeric) > 1.7976931348623158e308 OR scale(n.it::numeric) > 400",
        "n.it = '0'",
        "A number of 36 bytes is read as gigabytes of digits.",
    ),
    mutant(
        "facts-of-any-length",
        ARGUMENTS,
        "is_readable",
        "RETURN octet_length(_value::text) <= _bytes_max;",
        "RETURN true;",
        "Reports fill the memory of whoever watches.",
    ),
    mutant(
        "any-number-of-reports",
        REGISTRY,
        "report_process",
        ">= ${processes_per_login_max} THEN RAISE",
        ">= 2147483647 THEN RAISE",
        "One login fills the screen, and the memory, of whoever watches.",
        tests=("tests/postgres/test_reports_of_logins.py",),
    ),
    mutant(
        "a-name-taken-away",
        REGISTRY,
        "report_process",
        "AND p.replica = _replica AND p.login = session_user;\nIF FOUND",
        "AND p.replica = _replica;\nIF FOUND",
        "Any node can speak for a scheduler.",
        tests=("tests/postgres/test_reports_of_logins.py",),
    ),
)
TIMES = (
    mutant(
        "other-isolation-levels",
        ARGUMENTS,
        "needs_read_committed",
        "current_setting('transaction_isolation') <> 'read committed'",
        "current_setting('transaction_isolation') = 'serializable'",
        "A transaction that began before a quota is not bound by it.",
        tests=OF_ISOLATION,
    ),
    mutant(
        "commits-of-other-isolation-levels",
        COMMIT,
        "commit_claims",
        "current_setting('transaction_isolation') <> 'read committed'",
        "current_setting('transaction_isolation') = 'serializable'",
        "A transaction that began before a quota is not bound by it.",
        tests=OF_ISOLATION,
    ),
    mutant(
        "lease-for-ten-years",
        ARGUMENTS,
        "lease_length",
        "«_count BETWEEN 0 AND ${lease_ms_max}» THEN RETURN _count * interval '1 ms'; END IF;"
        " RAISE EXCEPTION 'bad length of a lease: % ms, of at most ${lease_ms_max}'",
        "_count BETWEEN 0 AND 315360000000",
        "A job that somebody leases is gone for good.",
        tests=OF_LEASES,
    ),
    mutant(
        "recall-in-anothers-round",
        ROUNDS,
        "recall_jobs",
        "AND r.number = _number «AND (r.login = session_user OR is_owner())»; SELECT array_agg(",
        "",
        "A scheduler takes the leases of another.",
        tests=OF_LEASES,
    ),
    mutant(
        "recall-from-another-login",
        ROUNDS,
        "recall_jobs",
        "AND j.lease_holder = of.holder_before AND j.lease_login = of.login_before",
        "AND j.lease_holder = of.holder_before",
        "A scheduler takes the leases of another by using its name.",
        tests=OF_LEASES,
    ),
    mutant(
        "note-in-anothers-round",
        ROUNDS,
        "note_round",
        "AND r.number = _number AND (r.login = session_user OR is_owner()); RETURN FOUND",
        "AND r.number = _number; RETURN FOUND",
        "A scheduler has another forget what its jobs were promised.",
        tests=OF_LEASES,
    ),
    mutant(
        "lost-on-a-machine-that-is-open-again",
        FORCE,
        "lose_tasks",
        "WHERE m.id = ANY (dead) AND m.state NOT IN (2, 3)",
        "WHERE false",
        "Tasks end on a machine that is well.",
        tests=OF_MACHINES,
    ),
    mutant(
        "ended-on-a-machine-that-has-grown",
        FORCE,
        "enforce_notice",
        "WHERE m.id = _machine AND m.revision > before + 1",
        "WHERE false",
        "Tasks end for want of room that there is.",
        tests=OF_MACHINES,
    ),
    mutant(
        "pruned-while-its-lease-is-held",
        HISTORY,
        "prune_history",
        "AND NOT (EXISTS (SELECT FROM job j WHERE j.id = ANY (jobs) AND j.state = 'planning')",
        "AND NOT (false",
        "A commit that is sent again is applied twice.",
        tests=("tests/postgres/test_prune.py", "tests/attack/test_replays.py"),
    ),
)
LOCKS = (
    mutant(
        "wake-waits-for-locked-jobs",
        QUEUE,
        "wake_jobs",
        "park_reason <> 'held' ORDER BY id FOR NO KEY UPDATE SKIP LOCKED",
        "park_reason <> 'held' ORDER BY id FOR NO KEY UPDATE",
        "A submitter that leaves a transaction open stops the planning of a kind of scheduler.",
        tests=OF_LOCKS,
    ),
    mutant(
        "force-waits-for-locked-jobs",
        FORCE,
        "force_end",
        "WHERE id = ANY (_jobs) ORDER BY id FOR NO KEY UPDATE «SKIP LOCKED»",
        "",
        "A submitter that leaves a transaction open stops all schedulers when a machine fails.",
        tests=OF_LOCKS,
    ),
    mutant(
        "end-locks-any-job",
        NODES,
        "lock_own_tasks",
        "JOIN allocation a USING (job_id, task) WHERE _started_ms IS NULL OR "
        "w.started_ms = (extract(epoch FROM a.started_at) * 1000)::bigint; END IF;",
        "LEFT JOIN allocation a USING (job_id, task); END IF;",
        "A node that leaves a transaction open holds up jobs that do not run there.",
        tests=OF_LOCKS,
    ),
    mutant(
        "commit-locks-any-job",
        COMMIT,
        "commit_claims",
        "AND (lease_token = ANY (_tokens) OR",
        "AND (true OR",
        "A scheduler without leases holds up the commits of others.",
        tests=OF_LOCKS,
    ),
    mutant(
        "commit-locks-machines-without-a-lease",
        COMMIT,
        "commit_claims",
        "CASE WHEN some_held THEN named ||",
        "CASE WHEN true THEN named ||",
        "A scheduler without leases holds up the whole cell.",
        tests=OF_LOCKS,
    ),
    mutant(
        "commit-locks-quotas-without-a-lease",
        COMMIT,
        "commit_claims",
        "IF limited AND some_held THEN",
        "IF limited THEN",
        "A scheduler without leases holds up all commits of a tenant.",
        tests=OF_LOCKS,
    ),
    mutant(
        "amounts-not-compared",
        AMOUNTS,
        "verify_amounts",
        "to_jsonb(h.amounts[1 : ${kinds_without_devices}]) <> «jsonb_build_array(g.it -> "
        "'cpu_milli', g.it -> 'memory_mib', g.it -> 'disk_mib')»",
        "to_jsonb(h.amounts[1 : ${kinds_without_devices}])",
        "Nobody finds a scheduler that gives tasks more than they ask for.",
        tests=("tests/attack/test_verify.py",),
    ),
)
MUTANTS: tuple[Mutant, ...] = (*WIRE, *JSON, *TIMES, *LOCKS)
