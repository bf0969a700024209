"""Faults in what is told and kept of the past: stories, snapshots, and use by the hour."""

from tests.mutants.mutant import Mutant, Part

OF_STORIES = ("tests/unit/reports/stories", "tests/postgres/test_stories.py")
story = Part("stories", OF_STORIES)
BOUNDED = ("tests/postgres/test_bounded_stories.py",)
snapshot = Part("snapshot", ("tests/postgres/test_interrupted_snapshot.py",))
usage = Part("usage", ("tests/postgres/test_usage.py", "tests/unit/reports/test_usage.py"))
MUTANTS: tuple[Mutant, ...] = (
    story(
        "eviction-is-told-twice",
        "omega/reports/stories/runs.py",
        "runs_told",
        "if is_evicted and evicted.has(where, run.ended_ms):",
        "if is_evicted and False:",
        "A task that was evicted once is told to have been evicted twice.",
    ),
    story(
        "move-is-told-as-a-placement",
        "omega/reports/stories/job.py",
        "_transaction",
        "came = transaction.granted - sum(it == transaction.transaction for it, _ in moved)",
        "came = transaction.granted",
        "A task that moved is told to have come anew.",
    ),
    story(
        "job-ends-before-its-tasks",
        "omega/reports/stories/events.py",
        "_moment",
        "is_last = event.what is Happened.FINISHED",
        "is_last = False",
        "The end of a job stands between the ends of its tasks.",
    ),
    story(
        "other-transactions-are-joined",
        "omega/reports/stories/events.py",
        "_sameness",
        "return event.what, event.by, event.transaction, event.for_jobs, event.detail",
        "return event.what, event.for_jobs, event.detail",
        "What two schedulers did is told as one's.",
    ),
    story(
        "claims-are-searched-without-end",
        "omega/store/postgres/inquiries.py",
        "PostgresInquiries.transactions_of",
        """searched = {"searched": TRANSACTIONS_SEARCHED_MAX, "claims": «CLAIMS_SEARCHED_MAX»}""",
        "2**62",
        "`omega why` takes minutes on a cell with large commits.",
        BOUNDED,
    ),
    story(
        "visits-are-told-without-end",
        "omega/store/postgres/stories.py",
        "PostgresStories.machine_records",
        "self._call(_VISITS, machine, VISITS_MAX, told=«VISIT_CLAIMS_MAX»)",
        "2**62",
        "The page of a machine with many small tasks takes a gigabyte.",
        BOUNDED,
    ),
    snapshot(
        "part-of-it-is-left",
        "omega/store/saved/writing.py",
        "write_cell",
        "finally:\n    «beside.unlink(missing_ok=True)»",
        "pass",
        "Each snapshot that is stopped leaves a hidden file of the cell's size.",
    ),
    usage(
        "time-before-the-window-counts",
        "omega/store/postgres/functions/holdings.sql",
        "runs_between",
        "greatest(least(e.ended_at, _ends) - «greatest(e.started_at, _begins)», '0')",
        "e.started_at",
        "A task that ran for a month is charged for a month in each of its weeks.",
    ),
    usage(
        "waits-of-helpers-count",
        "omega/store/postgres/functions/usage.sql",
        "read_usage",
        "WHERE j.parent IS NULL AND (j.first_leased_at > begins",
        "WHERE (j.first_leased_at > begins",
        "Jobs that no user submitted make the waits of users look shorter.",
    ),
    usage(
        "name-is-a-formula",
        "omega/reports/usage.py",
        "_plain",
        """return f"'{text}" if text.startswith(FORMULAS) else text""",
        "return text",
        "A tenant's name is a formula in the spreadsheet of whoever accounts for the cell.",
    ),
)
