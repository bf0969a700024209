"""Faults in what quotas count and refuse, in both implementations."""

from tests.mutants.mutant import Mutant

QUOTA_BALANCES = "omega/cell/quota_balances.py"
JUDGE_SEQUENTIAL = "omega/cell/judge_sequential.py"
MEMORY_QUOTAS = "omega/store/memory/quotas.py"
FUNCTIONS = "omega/store/postgres/functions"
QUOTAS = f"{FUNCTIONS}/quotas.sql"
LIMITS = f"{FUNCTIONS}/quota_limits.sql"
JUDGED = f"{FUNCTIONS}/judge_claims.sql"
IN_MEMORY = (
    "tests/contract/test_memory_store.py",
    "tests/property/test_judge.py",
    "tests/property/test_memory_store.py",
)
IN_POSTGRES = (
    "tests/postgres/test_quota_waiting.py",
    "tests/attack/test_quota_counting.py",
    "tests/attack/test_quota_of_jobs.py",
    "tests/attack/test_quota_waiting.py",
    "tests/postgres/test_waiting_calls.py",
    "tests/postgres/test_quota_shards.py",
    "tests/contract/test_postgres_store.py",
    "tests/postgres/test_lock_order.py",
    "tests/postgres/test_judged_alike.py",
    "tests/postgres/test_histories.py",
    "tests/postgres/test_concurrency.py",
)


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
    """Return a mutant of quotas."""
    tests = IN_POSTGRES if file.endswith(".sql") else IN_MEMORY
    return Mutant(
        name=f"quota.{name}",
        file=file,
        function=function,
        before=before,
        after=after,
        why=why,
        tests=tests,
        borrows=borrows,
    )


NUMPY = (
    mutant(
        "oversold-by-one",
        QUOTA_BALANCES,
        "after",
        "((left[rows] < 0) &",
        "((left[rows] < -1) &",
        "A tenant holds one unit more than it may.",
    ),
    mutant(
        "lowered-limit-refuses-everything",
        QUOTA_BALANCES,
        "after",
        "& (left[rows] < self.left[rows])).any()",
        ").any()",
        "Who is over one budget gets nothing of any other.",
    ),
    mutant(
        "jobs-counted-by-the-task",
        QUOTA_BALANCES,
        "after",
        "asked[Budget.JOBS] = «not running[job]»\nrunning[job] += 1",
        "1",
        "A tenant that may run ten jobs may run ten tasks.",
    ),
    mutant(
        "victims-give-nothing-back",
        QUOTA_BALANCES,
        "after",
        "left[list(self.drawn_by[other])] += freed",
        "left[list(self.drawn_by[other])] += 0",
        "A tenant at its limit cannot put one of its tasks in the place of another.",
    ),
    mutant(
        "not-covered-by-what-is-left",
        QUOTA_BALANCES,
        "cover",
        "return «not (need > np.maximum(self.left, 0)).any()»",
        "len(self.left) > 0",
        "Nothing is ever refused for a quota but by claims that evict.",
    ),
    mutant(
        "broken-gang-stays-charged",
        JUDGE_SEQUENTIAL,
        "_take",
        "«left.balances = balances»\nleft.evict(these, self._at, victims.amounts)",
        "self.left.balances = left.balances = balances",
        "The tenant of a broken gang pays for what it never got.",
    ),
    mutant(
        "grants-not-charged",
        "omega/store/memory/store.py",
        "_place",
        'self._quotas.charge(rows["job"], rows["amounts"], sign=1)',
        "pass",
        "A quota limits one transaction, and the next, and the next.",
    ),
    mutant(
        "ends-give-nothing-back",
        "omega/store/memory/forced_eviction.py",
        "_forget",
        'self._quotas.charge(rows["job"], rows["amounts"], sign=-1)',
        "pass",
        "A tenant's quota is used up for good.",
    ),
    mutant(
        "what-runs-not-counted",
        MEMORY_QUOTAS,
        "_recount",
        "self.charge(live.job, live.amounts, sign=1)",
        "pass",
        "A quota that is set late lets a tenant hold twice as much.",
    ),
)

SQL = (
    mutant(
        "counted-while-commits-are-under-way",
        LIMITS,
        "count_quota",
        "EXIT WHEN cardinality(past) = 0;",
        "EXIT;",
        "A commit that is under way is never charged.",
    ),
    mutant(
        "counted-without-its-shards",
        LIMITS,
        "count_quota",
        "WHERE quota_id = it.id ORDER BY shard FOR NO KEY UPDATE; SELECT u.used",
        "WHERE quota_id = it.id ORDER BY shard; SELECT u.used",
        "What is granted while a quota is counted is never charged.",
    ),
    mutant(
        "open-before-it-is-counted",
        LIMITS,
        "set_quota",
        "array_fill(-${unlimited}, ARRAY[${budgets}]), true",
        "array_fill(${unlimited}, ARRAY[${budgets}]), false",
        "A tenant may have anything until its new quota has been counted.",
    ),
    mutant(
        "counted-in-the-transaction-that-set-it",
        LIMITS,
        "count_quota",
        "ELSIF it.set_by = pg_current_xact_id_if_assigned() THEN",
        "ELSIF false THEN",
        "Commits that cannot see the quota yet are not counted.",
    ),
    mutant(
        "changed-limit-forgets-what-is-held",
        LIMITS,
        "set_quota",
        "+ _limits[${number}] - it.limits[${number}]",
        "+ _limits[${number}]",
        "A limit that is changed lets a tenant hold what it held before once more.",
    ),
    mutant(
        "what-runs-not-counted-in-sql",
        LIMITS,
        "count_quota",
        "it.limits[${number}] - coalesce(held[${number}], 0)",
        "it.limits[${number}]",
        "A quota that is set late lets a tenant hold twice as much.",
    ),
    mutant(
        "job-without-claims-draws",
        QUOTAS,
        "hold_quotas",
        "d.is_idle AND d.job = ANY (claimants)",
        "d.is_idle",
        "A scheduler uses up a tenant's quota of running jobs with jobs that do not run.",
    ),
    mutant(
        "shard-taken-that-does-not-cover",
        QUOTAS,
        "hold_quotas",
        "s.free[${number}] >= need[${number}]",
        "s.free[${number}] >= 0",
        "Shards are overdrawn.",
    ),
    mutant(
        "closed-shard-taken",
        QUOTAS,
        "hold_quotas",
        "AND NOT s.closed",
        "",
        "A tenant above a limit that was lowered is let in where a shard is above zero.",
    ),
    mutant(
        "shard-not-locked",
        QUOTAS,
        "hold_quotas",
        "LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED",
        "LIMIT 1",
        "Two commits spend the same shard.",
    ),
    mutant(
        "shards-not-locked",
        QUOTAS,
        "hold_quotas",
        "ORDER BY a.shard FOR NO KEY UPDATE",
        "ORDER BY a.shard",
        "A sum is spread anew that others have drawn on meanwhile.",
    ),
    mutant(
        "shards-locked-downwards",
        QUOTAS,
        "hold_quotas",
        "ORDER BY a.shard FOR",
        "ORDER BY a.shard DESC FOR",
        "Commits near a limit wait for each other until one of them is aborted.",
    ),
    mutant(
        "quotas-locked-downwards",
        QUOTAS,
        "hold_quotas",
        "array_agg(q.quota ORDER BY q.quota), '{}'), array_agg(q.jobs ORDER BY q.quota)",
        "array_agg(q.quota ORDER BY q.quota DESC), '{}'), array_agg(q.jobs ORDER BY q.quota DESC)",
        "Commits near a limit wait for each other until one of them is aborted.",
    ),
    mutant(
        "machines-locked-before-quotas",
        f"{FUNCTIONS}/tasks.sql",
        "release_tasks",
        "«IF» limited THEN PERFORM give_back_to_quotas(_jobs, _tasks, "
        "_started_ms); END IF; PERFORM 1 FROM machine WHERE id IN",
        "PERFORM 1 FROM machine ORDER BY id FOR NO KEY UPDATE; IF",
        "Ends and commits wait for each other until one of them is aborted.",
    ),
    mutant(
        "oversold-by-one-in-order",
        QUOTAS,
        "charged",
        "IF remains[place] < 0 AND",
        "IF remains[place] < -1 AND",
        "A tenant holds one unit more than it may.",
    ),
    mutant(
        "lowered-limit-refuses-everything-in-order",
        QUOTAS,
        "charged",
        "AND remains[place] < _budget[place] THEN",
        "THEN",
        "Who is over one budget gets nothing of any other.",
    ),
    mutant(
        "jobs-counted-by-the-task-in-order",
        QUOTAS,
        "charged",
        "END LOOP; _cost[${budgets}] := «(_running[_claimant] = 0)::integer»;",
        "1",
        "A tenant that may run ten jobs may run ten tasks.",
    ),
    mutant(
        "victims-give-nothing-back-in-order",
        QUOTAS,
        "charged",
        "remains[place] := remains[place] + given_back[b];",
        "",
        "A tenant at its limit cannot put one of its tasks in the place of another.",
    ),
    mutant(
        "broken-gang-stays-charged-in-order",
        JUDGED,
        "judge_claims",
        "«balances := before.balances;» FOR c IN",
        "",
        "The tenant of a broken gang pays for what it never got.",
    ),
    mutant(
        "broken-gang-keeps-its-victims-uncounted",
        JUDGED,
        "judge_claims",
        "«running := before.running;» balances := before.balances; FOR c IN",
        "",
        "A job that was spared no longer counts: its tenant runs one more than it may.",
    ),
    mutant(
        "alternate-charged-for-another-shape",
        JUDGED,
        "judge_claims",
        "cost({{ _amounts[(«_other_shapes[o]» - 1) * ${kinds} + ${number}] }}), '{}', '{}', '{}')",
        "_shapes[c]",
        "A smaller alternate does not help a tenant near its limit.",
        borrows=(JUDGED, "cost({{ _amounts[(_shapes[c] - 1) * ${kinds} + ${number}] }}), evicts"),
    ),
    mutant(
        "alternate-taken-without-quota",
        JUDGED,
        "judge_claims",
        "IF «cardinality(_quotas) = 0 OR charge IS NOT NULL» THEN",
        "true",
        "An alternate is a way around every quota.",
    ),
    mutant(
        "ends-give-nothing-back-in-sql",
        f"{FUNCTIONS}/tasks.sql",
        "release_tasks",
        "PERFORM give_back_to_quotas(_jobs, _tasks, _started_ms);",
        "",
        "A tenant's quota is used up for good.",
    ),
    mutant(
        "end-of-another-allocation-gives-back",
        QUOTAS,
        "give_back_to_quotas",
        "WHERE _started_ms IS NULL OR w.started_ms =",
        "WHERE true OR w.started_ms =",
        "A node that comes late gives a tenant more than its quota.",
    ),
    mutant(
        "what-ends-by-force-gives-nothing-back",
        f"{FUNCTIONS}/forced_eviction.sql",
        "force_end",
        "PERFORM give_back_to_quotas(jobs, tasks, NULL);",
        "",
        "A tenant pays for machines that failed under it.",
    ),
)

MUTANTS = (*NUMPY, *SQL)
