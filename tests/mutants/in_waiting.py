"""Faults in what users change of jobs that wait: hold, release, requeue, precedence."""

from tests.mutants.mutant import Mutant, Part

SQL = "omega/store/postgres/functions/waiting.sql"
QUEUE = "omega/store/postgres/functions/queue.sql"
MEMORY = "omega/store/memory/jobs.py"
OF_POSTGRES = ("tests/contract/test_postgres_store.py",)
OF_MEMORY = ("tests/contract/test_memory_store.py",)
mutant = Part("waiting")
MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "held-job-keeps-its-lease",
        SQL,
        "hold_job",
        "SET state = 'parked', lease_token = NULL, park_reason = 'held',",
        "SET state = 'parked', park_reason = 'held',",
        "A scheduler that planned the job when it was held hands it back to the queue.",
        OF_POSTGRES,
    ),
    mutant(
        "job-that-runs-whole-is-held",
        SQL,
        "hold_job",
        "AND NOT isempty(unplaced) AND (state IN ('pending', 'planning') OR state = 'parked'",
        "AND (state IN ('pending', 'planning', 'running') OR state = 'parked'",
        "A job that runs is shown as one that waits.",
        OF_POSTGRES,
    ),
    mutant(
        "release-of-any-parked-job",
        SQL,
        "release_job",
        "AND state = 'parked' AND park_reason = 'held';",
        "AND state = 'parked';",
        "A job that fits nowhere is tried again for nothing.",
        (*OF_POSTGRES, "tests/postgres/test_cli_queue.py"),
    ),
    mutant(
        "requeue-releases",
        SQL,
        "requeue_job",
        "(state = 'pending' OR state = 'parked' AND park_reason <> 'held')",
        "(state = 'pending' OR state = 'parked')",
        "A job that one user holds is started by another's requeue.",
        OF_POSTGRES,
    ),
    mutant(
        "precedence-releases",
        SQL,
        "set_job_precedence",
        "CASE WHEN park_reason = 'held' THEN 'parked' ELSE 'pending' END",
        "'pending'",
        "A held job starts when its precedence is changed.",
        OF_POSTGRES,
    ),
    mutant(
        "precedence-of-a-job-that-is-planned",
        SQL,
        "set_job_precedence",
        "workers_max IS NULL AND state IN ('pending', 'parked');",
        "workers_max IS NULL AND state IN ('pending', 'parked', 'planning');",
        "A scheduler evicts by a precedence that the job no longer has.",
        OF_POSTGRES,
    ),
    mutant(
        "held-jobs-are-woken",
        QUEUE,
        "wake_jobs",
        "AND state = 'parked' AND park_reason <> 'held'",
        "AND state = 'parked'",
        "A held job starts when room frees.",
        OF_POSTGRES,
    ),
    mutant(
        "held-jobs-are-read",
        QUEUE,
        "parked_first",
        "AND j.state = 'parked' AND j.park_reason <> 'held'",
        "AND j.state = 'parked'",
        "Ten thousand held jobs hide from schedulers those that could be woken.",
        OF_POSTGRES,
    ),
    mutant(
        "held-jobs-are-read-in-memory",
        MEMORY,
        "parked",
        "for job in of_kind «if job.park_reason is not ParkReason.HELD»",
        "",
        "In a simulation a held job is tried again and again.",
        OF_MEMORY,
    ),
    mutant(
        "held-jobs-are-woken-in-memory",
        MEMORY,
        "wake",
        "if number in self._parked «and self._parked[number].park_reason is not ParkReason.HELD»",
        "",
        "In a simulation a held job starts when room frees.",
        OF_MEMORY,
    ),
)
