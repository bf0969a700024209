"""Faults in what a commit does in Postgres."""

from tests.mutants.mutant import Part

FUNCTIONS = "omega/store/postgres/functions"
COMMIT = f"{FUNCTIONS}/commit_claims.sql"
ARRAYS = f"{FUNCTIONS}/claim_arrays.sql"
JUDGE_SEQUENTIAL = f"{FUNCTIONS}/judge_claims.sql"
PARTS = f"{FUNCTIONS}/judge_parts.sql"
GRANTS = f"{FUNCTIONS}/grant_plainly.sql"
VERDICTS = f"{FUNCTIONS}/apply_verdicts.sql"
OF_LOCKS = ("tests/postgres/test_lock_order.py", "tests/postgres/test_waiting_calls.py")
OF_DELTAS = ("tests/postgres/test_deltas.py",)
OF_ARGUMENTS = ("tests/postgres/test_refused_arguments.py",)
OF_COMMITS = (
    "tests/contract/test_postgres_store.py",
    "tests/postgres/test_judged_alike.py",
    "tests/postgres/test_histories.py",
    "tests/postgres/test_concurrency.py",
)
mutant = Part("commit", OF_COMMITS + OF_LOCKS)
LOCKS = (
    mutant(
        "jobs-locked-downwards",
        COMMIT,
        "commit_claims",
        "h.lease_token = ANY (_tokens))) ORDER BY id FOR",
        "h.lease_token = ANY (_tokens))) ORDER BY id DESC FOR",
        "Commits and ends wait for each other until one of them is aborted.",
        tests=OF_LOCKS + OF_COMMITS,
    ),
    mutant(
        "machines-locked-downwards",
        GRANTS,
        "grant_${of_kinds}",
        "GROUP BY c.machine ORDER BY c.machine",
        "GROUP BY c.machine ORDER BY c.machine DESC",
        "Commits and ends wait for each other until one of them is aborted.",
        tests=OF_LOCKS + OF_COMMITS,
    ),
    mutant(
        "machines-locked-before-jobs",
        COMMIT,
        "commit_claims",
        "named := _machines || _other_machines; «WITH» locked AS MATERIALIZED (SELECT "
        "id, state, lease_token, placed, minimum, unplaced FROM job",
        "PERFORM 1 FROM machine WHERE id = ANY (named) ORDER BY id FOR NO KEY UPDATE; WITH",
        "Commits and ends wait for each other until one of them is aborted.",
        tests=OF_LOCKS + OF_COMMITS,
        borrows=(
            COMMIT,
            "PERFORM 1 FROM machine WHERE id = ANY (named) ORDER BY id FOR NO KEY UPDATE; END",
        ),
    ),
    mutant(
        "jobs-not-locked",
        COMMIT,
        "commit_claims",
        "h.lease_token = ANY (_tokens))) ORDER BY id FOR NO KEY UPDATE",
        "h.lease_token = ANY (_tokens))) ORDER BY id",
        "A commit that is sent twice at once is judged twice.",
        tests=OF_LOCKS + OF_COMMITS,
    ),
    mutant(
        "machines-not-locked",
        COMMIT,
        "commit_claims",
        "PERFORM 1 FROM machine WHERE id = ANY (touched) ORDER BY id «FOR NO KEY "
        "UPDATE»; judged :=",
        "",
        "A claim is judged on a row that another commit is about to change.",
        tests=OF_LOCKS + OF_COMMITS,
    ),
    mutant(
        "alternates-not-locked",
        COMMIT,
        "commit_claims",
        "«PERFORM 1 FROM machine WHERE id = ANY (named) ORDER BY id FOR NO KEY UPDATE;» END IF;",
        "",
        "Rows of two moments are answered: no order of the commits explains them.",
        tests=("tests/attack/test_locks.py",),
    ),
    mutant(
        "machines-of-moving-tasks-not-locked",
        COMMIT,
        "commit_claims",
        "(j.minimum > 0 OR a.job_id = ANY (_jobs))",
        "j.minimum > 0",
        "A task that moves gives its room back to a machine that nobody looked at.",
    ),
    mutant(
        "machines-of-falling-gangs-not-locked",
        COMMIT,
        "commit_claims",
        "PERFORM 1 FROM machine WHERE id = ANY («touched») ORDER BY id FOR NO KEY "
        "UPDATE; judged :=",
        "named",
        "An eviction that breaks a gang locks its machines in any order, and too late.",
        tests=OF_LOCKS + OF_COMMITS,
        borrows=(COMMIT, "named := _machines || _other_machines"),
    ),
)

CHECKS = (
    mutant(
        "id-not-checked",
        COMMIT,
        "commit_claims",
        "SELECT q.there, t.id IS NOT NULL,",
        "SELECT q.there, false,",
        "Who had no answer and asks again is told that its own tasks were another's.",
    ),
    mutant(
        "id-of-another-taken-for-ones-own",
        COMMIT,
        "commit_claims",
        "IF NOT is_the_same THEN",
        "IF false THEN",
        "A scheduler is told another's verdicts as its own.",
        tests=OF_ARGUMENTS + OF_COMMITS,
    ),
    mutant(
        "one-id-granted-to-two",
        COMMIT,
        "commit_claims",
        "IF NOT FOUND AND ${accepted} = ANY (verdicts) THEN",
        "IF false THEN",
        "One of two grants is recorded: who asks again for the other is told that it failed.",
        tests=OF_ARGUMENTS + OF_COMMITS,
    ),
    mutant(
        "lease-not-checked",
        COMMIT,
        "commit_claims",
        "AND l.lease_token = j.token, false)",
        ", false)",
        "A scheduler that was thought dead places tasks of a job that another plans by now.",
    ),
    mutant(
        "lease-not-checked-in-order",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "WHEN NOT held[j] THEN ${lease_lost}",
        "WHEN false THEN ${lease_lost}",
        "A scheduler that lost its lease need only name somebody to evict.",
    ),
    mutant(
        "placed-task-placed-again",
        COMMIT,
        "commit_claims",
        "c.tasks <@ l.unplaced AND c.claims",
        "c.claims",
        "A task that is over runs again.",
    ),
    mutant(
        "task-placed-twice-at-once",
        COMMIT,
        "commit_claims",
        "AND c.claims = c.different",
        "",
        "A transaction that names a task twice is aborted, with all that it grants to others.",
    ),
    mutant(
        "task-placed-twice-in-order",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "WHEN here @> _tasks[c] THEN ${already_placed}",
        "",
        "A transaction that names a task twice is aborted, with all that it grants to others.",
    ),
    mutant(
        "draining-machine-takes-claims",
        GRANTS,
        "grant_${of_kinds}",
        "AND m.state = 0 AND",
        "AND m.state <= 1 AND",
        "A machine that is drained never gets empty.",
    ),
    mutant(
        "machine-under-notice-takes-claims",
        GRANTS,
        "grant_${of_kinds}",
        "AND m.notice IS NULL",
        "",
        "A machine that shrank below its use takes on more, as long as it asks for something else.",
    ),
    mutant(
        "draining-machine-takes-claims-in-order",
        PARTS,
        "of_machine",
        "WHEN _state <> 0 THEN ${closed}",
        "WHEN _state > 1 THEN ${closed}",
        "A machine that is drained never gets empty.",
    ),
    mutant(
        "stale-not-compared",
        GRANTS,
        "grant_${of_kinds}",
        "AND NOT (_by_sequence AND (",
        "AND NOT (false AND (",
        "The sequence rule grants on views of any age.",
    ),
    mutant(
        "stale-not-compared-in-order",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "_by_sequence AND _seen[c] <> sequences[place]",
        "false",
        "The sequence rule grants on views of any age.",
    ),
    mutant(
        "one-fresh-claim-vouches-for-a-stale-one",
        GRANTS,
        "grant_${of_kinds}",
        "a.least_seen <> m.sequence OR",
        "",
        "The sequence rule grants on an old view beside a new one.",
    ),
    mutant(
        "alternate-not-compared",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "_by_sequence AND _other_seen[o] <> sequences[other_at[o]]",
        "false",
        "The sequence rule grants alternates on views of any age.",
    ),
)

FIT = (
    mutant(
        "oversells-by-one",
        GRANTS,
        "grant_${of_kinds}",
        "<= m.${kind}_capacity | AND }}",
        "<= m.${kind}_capacity + 1 | AND }}",
        "A commit for one unit too much is aborted by a CHECK, with all that it grants to others.",
    ),
    mutant(
        "oversells-by-one-in-order",
        PARTS,
        "fits",
        "IF room < 0 THEN",
        "IF room < -1 THEN",
        "A commit for one unit too much is aborted by a CHECK, with all that it grants to others.",
    ),
    mutant(
        "last-unit-never-sold-in-order",
        PARTS,
        "fits",
        "IF room < 0 THEN",
        "IF room <= 0 THEN",
        "No machine is ever filled.",
    ),
    mutant(
        "sequence-not-raised",
        GRANTS,
        "grant_${of_kinds}",
        "sequence = «m.sequence + 1», revision = m.revision + 1",
        "m.sequence",
        "Nobody is ever stale: the sequence rule protects nothing.",
    ),
    mutant(
        "sequence-raised-twice",
        GRANTS,
        "grant_${of_kinds}",
        "sequence = «m.sequence + 1», revision = m.revision + 1",
        "m.sequence + 2",
        "Stores disagree about what a view has seen.",
    ),
    mutant(
        "grant-missed-by-deltas",
        GRANTS,
        "grant_${of_kinds}",
        "revision = m.revision + 1, changed_by = «pg_current_xact_id()»",
        "m.changed_by",
        "A view that was away for long never learns of others' grants.",
        tests=OF_DELTAS,
    ),
    mutant(
        "exchange-missed-by-deltas",
        VERDICTS,
        "apply_verdicts",
        "revision = m.revision + 1, changed_by = «pg_current_xact_id()»",
        "m.changed_by",
        "A view that was away for long never learns of evictions.",
        tests=OF_DELTAS,
    ),
    mutant(
        "exchange-raises-the-sequence-of-losers",
        VERDICTS,
        "apply_verdicts",
        "sequence = m.sequence + net.granted,",
        "sequence = m.sequence + 1,",
        "The fall of a gang makes claims stale on all its machines.",
    ),
    mutant(
        "exchange-raises-the-sequence-once-a-claim",
        VERDICTS,
        "apply_verdicts",
        "max(x.granted) AS granted",
        "sum(x.granted) AS granted",
        "Stores disagree about what a view has seen.",
    ),
    mutant(
        "evicted-tasks-still-placed",
        VERDICTS,
        "apply_verdicts",
        "placed = j.placed + net.granted «- net.evicted», fruitless = CASE",
        "",
        "A fallen gang is believed to run, and comes back by halves.",
    ),
)

MUTANTS = (*LOCKS, *CHECKS, *FIT)
