"""Faults in audits: what was held over a time, which room is idle, and what is above a policy."""

from tests.mutants.mutant import Mutant, Part

SQL = "omega/store/postgres/functions/holdings.sql"
MEMORY = "omega/store/memory/holdings.py"
REPORT = "omega/reports/audit.py"
OF_POSTGRES = ("tests/postgres/test_holdings.py", "tests/contract/test_postgres_store.py")
OF_MEMORY = ("tests/property/test_holdings.py", "tests/contract/test_memory_store.py")
OF_REPORTS = ("tests/unit/reports/test_audit.py",)
mutant = Part("audit")
MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "ended-task-counts-from-its-start",
        SQL,
        "runs_between",
        "least(e.ended_at, _ends) - «greatest(e.started_at, _begins)»",
        "e.started_at",
        "A tenant seems to hold more than the whole cell, for work of last week.",
        OF_POSTGRES,
    ),
    mutant(
        "running-task-counts-from-its-start",
        SQL,
        "runs_between",
        "_ends - «greatest(a.started_at, _begins)»",
        "a.started_at",
        "A service that runs for a year seems to hold the cell several times over.",
        OF_POSTGRES,
    ),
    mutant(
        "lost-task-forgotten",
        SQL,
        "read_idle_jobs",
        "WHERE «greatest(i.since, o.lost_at)» <= latest ORDER BY",
        "i.since",
        "A job that lost a task a moment ago is reported as idle for hours.",
        OF_POSTGRES,
    ),
    mutant(
        "ended-task-counts-from-its-start-in-memory",
        MEMORY,
        "_ended_within",
        'rows["ended_ms"] - «np.maximum(rows["started_ms"], since_ms)»',
        'rows["started_ms"]',
        "In a simulation an audit counts what was held before its time.",
        OF_MEMORY,
    ),
    mutant(
        "equal-is-above",
        REPORT,
        "is_above",
        "self.part > self.limit.at_most",
        "self.part >= self.limit.at_most",
        "Who holds exactly what was agreed is reported.",
        OF_REPORTS,
    ),
    mutant(
        "named-resource-ignored",
        REPORT,
        "judged",
        "self.limit is None or self.limit.of is None",
        "True",
        "Who may hold half of the GPUs is reported for its share of the memory.",
        OF_REPORTS,
    ),
)
