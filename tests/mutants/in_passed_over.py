"""Faults in what a fair order passes over."""

from tests.mutants.mutant import Mutant, Part

PASSED_OVER = "omega/framework/passed_over.py"
OF_PASSED_OVER = ("tests/unit/framework/test_passed_over.py",)
OF_QUEUES = ("tests/unit/framework/test_fair_queue.py", "tests/simulation/test_fair_queue.py")
mutant = Part("ordering")
MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "equal-jobs-are-tried-on-a-full-cell",
        PASSED_OVER,
        "PassedOver.jobs_max",
        "return wanted «if is_smaller else 0»",
        "",
        "Every job of a long queue is tried on a full cell.",
        OF_PASSED_OVER,
    ),
    mutant(
        "small-job-waits-for-a-large-one",
        PASSED_OVER,
        "_Failures.as_large",
        "bool((task >= of_task).all() «and (whole >= at_least).all()»)",
        "",
        "A single task waits for room that a gang before it needs.",
        OF_PASSED_OVER,
    ),
    mutant(
        "one-that-finds-room-shows-nothing",
        PASSED_OVER,
        "PassedOver.note_placed",
        "if «not known.needs»:",
        "False",
        "A job that few machines take holds up its tenant's jobs for ten seconds each.",
        OF_PASSED_OVER,
    ),
    mutant(
        "a-part-that-finds-room-shows-all",
        PASSED_OVER,
        "PassedOver.note_placed",
        "as_large = known.as_large(task, task * «tasks»)",
        "99",
        "Gangs without room are tried again after each small job that was placed.",
        OF_PASSED_OVER,
    ),
    mutant(
        "passed-over-for-good",
        PASSED_OVER,
        "PassedOver.jobs_max",
        "if «viewed_s >= known.until_s»:",
        "False",
        "Where nothing ends, a tenant that found no room once is never tried again.",
        (*OF_PASSED_OVER, *OF_QUEUES),
    ),
)
