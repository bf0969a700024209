"""Faults in elastic jobs: helpers, activities, and who gets workers."""

from tests.mutants.mutant import Part

FUNCTIONS = "omega/store/postgres/functions"
ELASTIC = f"{FUNCTIONS}/elastic.sql"
OF_STORES = (
    "tests/contract/test_postgres_store.py",
    "tests/postgres/test_elastic.py",
    "tests/postgres/test_histories.py",
)
OF_MEMORY = ("tests/contract/test_memory_store.py", "tests/property/test_memory_store.py")
OF_NODES = ("tests/unit/nodes/test_elastic_runs.py", "tests/unit/nodes/test_activities.py")
OF_POLICIES = (
    "tests/unit/schedulers/elastic",
    "tests/property/test_elastic_policies.py",
    "tests/simulation/test_elastic.py",
)
mutant = Part("elastic")
IN_SQL = (
    mutant(
        "more-than-at-most",
        ELASTIC,
        "add_helpers",
        "of.workers_max - of.tasks« - coalesce(sum(c.tasks - c.ended), 0)»",
        "+ 0 * count(c.ended)",
        "A job gets more workers than it may have.",
        OF_STORES,
    ),
    mutant(
        "parent-not-locked",
        ELASTIC,
        "add_helpers",
        "AND j.lease_login = session_user) «FOR NO KEY UPDATE»",
        "",
        "Helpers that are added while their job ends run for ever.",
        ("tests/postgres/test_elastic.py",),
    ),
    mutant(
        "helpers-of-equal-precedence",
        ELASTIC,
        "add_helpers",
        "_precedence >= of.precedence",
        "_precedence > of.precedence",
        "Helpers hold the room of jobs that are as urgent as the one that they help.",
        OF_STORES,
    ),
    mutant(
        "evicted-helper-waits",
        f"{FUNCTIONS}/apply_verdicts.sql",
        "apply_verdicts",
        "PERFORM end_lost_helpers(_evicted_jobs, _evicted_tasks);",
        "NULL;",
        "A helper that made way waits in the queue and is never leased.",
        OF_STORES,
    ),
    mutant(
        "lost-helper-waits",
        f"{FUNCTIONS}/forced_eviction.sql",
        "force_end",
        "PERFORM end_lost_helpers(jobs, tasks);",
        "",
        "A helper whose machine failed is placed again as an ordinary task.",
        OF_STORES,
    ),
    mutant(
        "helper-without-room-waits",
        f"{FUNCTIONS}/queue.sql",
        "hand_back_jobs",
        "fruitless = CASE WHEN w.progressed THEN 0 ELSE j.fruitless + 1 END"
        " FROM unnest(_jobs, _tokens, _delays_ms, _progressed)"
        " AS w (id, token, delay_ms, progressed) WHERE j.id = w.id AND j.lease_token = w.token;"
        " GET DIAGNOSTICS returned = ROW_COUNT; «PERFORM give_up_helpers(_jobs);»",
        "",
        "Helpers that found no room are counted as waiting, and leased again.",
        OF_STORES,
    ),
    mutant(
        "helpers-end-too-soon",
        ELASTIC,
        "with_helpers",
        "WHERE j.ended + m.tasks = j.tasks",
        "WHERE j.ended + m.tasks <= j.tasks",
        "With the first task of a job all its helpers end.",
        OF_STORES,
    ),
    mutant(
        "planned-helpers-outlive-the-job",
        f"{FUNCTIONS}/tasks.sql",
        "release_tasks",
        "IF cardinality(ending) > 0 THEN «PERFORM finish_helpers(ending, 'succeeded');» END IF;"
        " IF stages IS NOT NULL THEN PERFORM end_stages",
        "NULL;",
        "Helpers of a job that is over are placed.",
        OF_STORES,
    ),
    mutant(
        "any-task-is-a-helper",
        ELASTIC,
        "end_helpers",
        "WHERE j.parent IS NOT NULL AND j.scheduler = _scheduler",
        "WHERE j.scheduler = _scheduler",
        "A scheduler ends the tasks that users wanted.",
        OF_STORES,
    ),
    mutant(
        "helpers-are-recalled",
        f"{FUNCTIONS}/rounds.sql",
        "recall_jobs",
        "«AND j.parent IS NULL» AND (j.state",
        "",
        "A round moves helpers as if they were jobs of users.",
        OF_STORES,
    ),
)

IN_MEMORY = (
    mutant(
        "evicted-helper-waits-in-memory",
        "omega/store/memory/store.py",
        "_apply",
        "for job, tasks in evicted.items():\n    «self._end_lost_helpers(self._jobs[job], tasks)»",
        "pass",
        "A simulated helper that made way is lost to its job's bound.",
        OF_MEMORY,
    ),
    mutant(
        "helpers-outlive-the-job-in-memory",
        "omega/store/memory/agents.py",
        "end_tasks",
        "if self._jobs[number].state in FINAL:\n    self._leased.pop(number, None)\n"
        "    «slots += self._finish_helpers(number, Trigger.END_ALL)»",
        "pass",
        "Simulated helpers run for ever.",
        OF_MEMORY,
    ),
)

IN_NODES = (
    mutant(
        "activity-lost-with-its-worker",
        "omega/nodes/elastic_runs.py",
        "staff",
        "self._waiting[self._busy.pop(worker)] += 1",
        "self._busy.pop(worker)",
        "A job of which a worker was evicted never ends.",
        OF_NODES,
    ),
    mutant(
        "phases-not-in-order",
        "omega/nodes/elastic_runs.py",
        "_open_phase",
        "before is None or «self.done[before] >= self.phases[before].activities»",
        "before >= 0",
        "Reduces run before the maps that they wait for.",
        OF_NODES,
    ),
)

IN_POLICIES = (
    mutant(
        "room-above-the-target",
        "schedulers/elastic/policies.py",
        "room",
        "np.maximum(«self._limit(capacity)» - used, 0)",
        "capacity",
        "The policy `cap` fills the whole cell.",
        OF_POLICIES,
    ),
    mutant(
        "next-step-only",
        "schedulers/elastic/model.py",
        "best_growth",
        "best = int(np.argmax(gain_s / (counts - workers)))",
        "best = 0",
        "Workers go to a job that gains little, and another one gets none.",
        OF_POLICIES,
    ),
    mutant(
        "activities-counted-again",
        "schedulers/elastic/scheduler.py",
        "_learned",
        "totals = before[1] if before else {}",
        "totals = {}",
        "Old durations outweigh new ones more with each second.",
        OF_POLICIES,
    ),
    mutant(
        "oldest-helpers-first",
        "omega/framework/elastic_planner.py",
        "newest",
        "np.lexsort((-live.task, -live.job, «-live.started_ms»))",
        "live.started_ms",
        "The helpers that have worked longest lose their work.",
        ("tests/unit/framework/test_elastic_planner.py",),
    ),
)

MUTANTS = (*IN_SQL, *IN_MEMORY, *IN_NODES, *IN_POLICIES)
