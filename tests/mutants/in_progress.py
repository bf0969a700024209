"""Faults in what is kept of progress, and in the nodes that make its steps."""

from tests.mutants.in_functions import mutant
from tests.mutants.in_memory import mutant as memory_mutant
from tests.mutants.mutant import Mutant

PROGRESS = "omega/store/postgres/functions/progress.sql"
ARITHMETIC = "omega/nodes/gang_runs.py"
STORE = "omega/store/memory/progress.py"
STEPPER = "omega/nodes/stepper.py"


def of_nodes(name: str, file: str, function: str, before: str, after: str, why: str) -> Mutant:
    """Return a mutant of virtual nodes."""
    return Mutant(
        name=f"nodes.{name}",
        file=file,
        function=function,
        before=before,
        after=after,
        why=why,
        tests=("tests/unit/nodes",),
    )


MUTANTS: tuple[Mutant, ...] = (
    memory_mutant(
        "progress-taken-back",
        STORE,
        "report_progress",
        "record.steps = max(record.steps, min(made, record.spec.work.steps))",
        "record.steps = min(made, record.spec.work.steps)",
        "A report that comes late has a job make the same steps again.",
    ),
    mutant(
        "progress-taken-back",
        PROGRESS,
        "report_progress",
        "SET steps = greatest(p.steps, excluded.steps)",
        "SET steps = excluded.steps",
        "A report that comes late has a job make the same steps again.",
    ),
    mutant(
        "progress-after-the-end",
        PROGRESS,
        "report_progress",
        "WHERE j.state NOT IN (${final_states}) AND s.wire",
        "WHERE s.wire",
        "What is told of a job that is over changes.",
    ),
    mutant(
        "progress-of-a-gang-elsewhere",
        PROGRESS,
        "report_progress",
        "WHERE a.job_id = w.job_id AND own @> a.machine_id",
        "WHERE a.job_id = w.job_id",
        "A node reports on what runs on the machines of others.",
        tests=("tests/postgres/test_own_machines.py",),
    ),
    mutant(
        "half-a-gang-runs-whole",
        PROGRESS,
        "read_progress",
        "CASE WHEN live.tasks = j.tasks",
        "CASE WHEN live.tasks > 0",
        "A gang makes steps while some of its tasks wait.",
    ),
    of_nodes(
        "restart-for-nothing",
        ARITHMETIC,
        "begun",
        "np.where(run_ms > 0, np.ceil(restart_ms), 0)",
        "np.where(run_ms < 0, np.ceil(restart_ms), 0)",
        "To be interrupted costs nothing, so schedulers that move work look good.",
    ),
    Mutant(
        name="nodes.fastest-type-counts",
        file="schedulers/ml_gpu/gang_rates.py",
        function="steps_per_s",
        before="return float(rates.min())",
        after="return float(rates.max())",
        why="A gang on GPUs of two types steps faster than its slowest member.",
        tests=("tests/unit/schedulers/ml_gpu/test_gang_rates.py",),
    ),
    of_nodes(
        "counted-while-no-nodes-ran",
        ARITHMETIC,
        "begun",
        "steps_from_ms=np.maximum(since_ms + waits_ms, seen_from_ms)",
        "steps_from_ms=since_ms + waits_ms",
        "Nodes that are started again make steps that are on record once more.",
    ),
    of_nodes(
        "interruption-between-looks-missed",
        STEPPER,
        "_read",
        "goes_on = self._since(told, self._runs.job) == self._runs.since_ms",
        "goes_on = self._since(told, self._runs.job) >= 0",
        "A gang that was moved goes on at the rate of the GPUs that it has lost.",
    ),
)
