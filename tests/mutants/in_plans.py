"""Faults in plans before a submission, in `omega what-if` and in replays of what was recorded."""

from tests.mutants.mutant import Mutant, Part

SQL = "omega/store/postgres/functions/planned.sql"
REHEARSAL = "omega/framework/rehearsal.py"
WHAT_IF = "omega/sim/what_if.py"
REPLAY = "omega/reports/replay.py"
OF_PLANS = ("tests/postgres/test_plan.py",)
BY_CONTRACT = ("tests/contract/test_postgres_store.py",)
plan = Part("plan", OF_PLANS)
what_if = Part("what-if", ("tests/unit/sim/test_what_if.py",))
replay = Part(
    "replay", ("tests/unit/cli/snapshot/test_replay.py", "tests/property/test_recordings.py")
)
MUTANTS: tuple[Mutant, ...] = (
    plan(
        "evicts-more-than-was-planned",
        SQL,
        "submit_planned",
        "is_as_planned := ${accepted} = ALL (verdicts)"
        " AND (SELECT array_agg(e ORDER BY e)"
        " FROM unnest(evicted_jobs, evicted_tasks) AS e (job, task))"
        " IS NOT DISTINCT FROM"
        " (SELECT array_agg(l ORDER BY l) FROM unnest(_lost_jobs, _lost_tasks) AS l (job, task));",
        "is_as_planned := ${accepted} = ALL (verdicts);",
        "A plan that was read and approved ends tasks that it did not name.",
        BY_CONTRACT,
    ),
    plan(
        "sequences-are-not-compared",
        SQL,
        "submit_planned",
        "commit_claims(_id, _spec ->> 'scheduler', _holder, «true»,",
        "false",
        "A plan is committed on machines that have changed since, and nobody is told.",
    ),
    plan(
        "lost-answer-submits-again",
        SQL,
        "submit_planned",
        "WHERE t.id = _id; IF «FOUND» THEN",
        "false",
        "Whoever had no answer and asks again is told of another job, or of none.",
        BY_CONTRACT,
    ),
    plan(
        "evicted-tasks-are-evicted-again",
        REHEARSAL,
        "_Stage._met",
        "return there.without(np.array([name in gone for name in names], dtype=np.bool_))",
        "return there",
        "A plan of several tries makes room by ending one task twice.",
        ("tests/unit/framework/test_rehearsal.py",),
    ),
    plan(
        "quota-is-whole-at-each-try",
        REHEARSAL,
        "_Stage._note",
        "if after is not None:\n    «self._left = after.left»",
        "pass",
        "A plan grants more than a quota has left, and its commit is refused.",
    ),
    what_if(
        "drained-machine-takes-claims",
        WHAT_IF,
        "_prepare",
        "MachineState.DRAINING if drained else state",
        "state",
        "A drain that would leave jobs without room is shown as harmless.",
    ),
    what_if(
        "rule-of-the-first-transactions",
        WHAT_IF,
        "rules_of",
        "last[whose] = «max»(last.get(whose, (-1, one.rule)), (one.last_ms, one.rule), key=_first)",
        "min",
        "A cell that was changed to the fit rule is simulated by the sequence rule.",
    ),
    what_if(
        "quotas-are-left-out",
        WHAT_IF,
        "_prepare",
        "for quota in «cell.quotas»:\n    virtual.store.set_quota(quota)",
        "()",
        "Jobs over their quota are placed in the simulation, and all waits look shorter.",
    ),
    replay(
        "evictions-are-not-compared",
        REPLAY,
        "_difference",
        "if not others.any() and evicted == commit.evicted:",
        "if not others.any():",
        "A version of the rule that evicts others is said to judge alike.",
    ),
    replay(
        "rule-that-is-asked-for-is-ignored",
        REPLAY,
        "replay",
        "rule=rule or commit.transaction.rule",
        "rule=commit.transaction.rule",
        "Every other rule is said to judge just as the one that ran.",
    ),
)
