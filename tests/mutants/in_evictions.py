"""Faults in what simulations say of evictions, and in the precedences by which they happen."""

from tests.mutants.mutant import Part

EVICTORS = "omega/model/evictors.py"
FOLD = "omega/metrics/evictions.py"
RUN = "omega/sim/live_run.py"
PLAN = "omega/cli/sim/plan.py"
TABLES = "omega/workload/traces/google_tables.py"
TESTS = (
    "tests/unit/model/test_evictors.py",
    "tests/unit/metrics/test_evictions.py",
    "tests/unit/sim/test_live_run.py",
    "tests/unit/workload/traces/test_google_tables.py",
    "tests/unit/cli/sim/test_precedences.py",
)
mutant = Part("evictions", TESTS)
MUTANTS = (
    mutant(
        "own-moves-counted",
        EVICTORS,
        "evicted_tasks",
        "job in lost and (job, task) not in moved",
        "job in lost",
        "A job that is moved and evicted at once seems to have lost what it moved itself.",
    ),
    mutant(
        "wait-from-the-last",
        FOLD,
        "__call__",
        "self._since_s.setdefault(event.job, self._clock.now())",
        "self._since_s[event.job] = self._clock.now()",
        "A job that is evicted again and again seems to be whole soon.",
    ),
    mutant(
        "whole-after-any-attempt",
        FOLD,
        "__call__",
        "job in self._since_s and self._is_whole(job)",
        "job in self._since_s",
        "An evicted job seems to be whole although tasks still wait.",
    ),
    mutant(
        "gap-of-the-default",
        RUN,
        "__init__",
        "self.cell.store.set_precedence_gap(experiment.precedence_gap)",
        "self.cell.store.set_precedence_gap(10)",
        "`--precedence-gap` of a simulation has no effect.",
    ),
    mutant(
        "losses-counted-by-job",
        RUN,
        "_lose_tasks",
        "«placed - self._placed(job)»",
        "1",
        "Of several tasks that a job loses with a machine one is counted.",
    ),
    mutant(
        "prefill-evicted",
        PLAN,
        "experiment",
        "uniform.prefill.not_preemptible()",
        "uniform.prefill",
        "Tasks that a list says are there all the time are evicted.",
    ),
    mutant(
        "production-evicts-production",
        TABLES,
        "precedence_of",
        "«np.maximum(priority - PRODUCTION_PRIORITY, 0)»",
        "10 * np.maximum(priority - PRODUCTION_PRIORITY, 0)",
        "Production jobs of the trace evict each other, which they never did.",
    ),
)
