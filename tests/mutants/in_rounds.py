"""Faults in rounds and recalls: who plans running jobs, and what becomes of them."""

from tests.mutants.in_functions import QUEUE, TASKS, mutant
from tests.mutants.mutant import Mutant

ROUNDS = "omega/store/postgres/functions/rounds.sql"

MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "round-begun-early",
        ROUNDS,
        "           <= clock_timestamp()\n    RETURNING",
        "           <= clock_timestamp() + interval '1 day'\n    RETURNING",
        "Two replicas plan the same GPUs at once.",
    ),
    mutant(
        "past-round-notes",
        ROUNDS,
        "AND r.number = _number AND (r.login = session_user OR is_owner());\n    RETURN FOUND",
        "AND r.number >= _number AND (r.login = session_user OR is_owner());\n    RETURN FOUND",
        "A scheduler that was thought dead overwrites what its successor knows.",
    ),
    mutant(
        "recall-of-other-kinds",
        ROUNDS,
        "AND j.scheduler = of.scheduler\n                       AND (",
        "AND (",
        "One kind of scheduler moves the jobs of another.",
    ),
    mutant(
        "recall-of-leased-jobs",
        ROUNDS,
        "AND j.lease_holder = of.holder_before AND",
        "AND",
        "A job is taken from whoever plans it now.",
    ),
    mutant(
        "recalled-job-in-line-though-it-runs",
        QUEUE,
        "SET state = CASE WHEN isempty(j.unplaced) THEN 'running' ELSE 'pending' END, lease_token",
        "SET state = 'pending', lease_token",
        "A job that runs is planned anew, for tasks that it has not got.",
    ),
    mutant(
        "expired-recall-in-line-though-it-runs",
        QUEUE,
        "UPDATE job j SET state = CASE WHEN isempty(j.unplaced) THEN 'running' ELSE 'pending' END,",
        "UPDATE job j SET state = 'pending',",
        "When a scheduler by rounds dies, all that it runs is planned anew.",
    ),
    mutant(
        "recalled-job-never-over",
        TASKS,
        "state = CASE WHEN j.ended + e.tasks = j.tasks THEN",
        "state = CASE WHEN j.state = 'running' AND j.ended + e.tasks = j.tasks THEN",
        "A job whose last task ends while it is planned is never over.",
    ),
)
