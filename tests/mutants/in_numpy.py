"""Faults in the judge that the memory store and the simulator use."""

from tests.mutants.mutant import Mutant

JUDGE = "omega/cell/judge.py"
EXCHANGE = "omega/cell/judge_sequential.py"
COMMIT_CONTEXT = "omega/cell/commit_context.py"
TESTS = (
    "tests/contract/test_memory_store.py",
    "tests/unit/cell",
    "tests/property/test_judge.py",
    "tests/property/test_memory_store.py",
)


def mutant(name: str, file: str, before: str, after: str, why: str) -> Mutant:
    """Return a mutant of the judge."""
    return Mutant(name=f"numpy.{name}", file=file, before=before, after=after, why=why, tests=TESTS)


MACHINE_VERDICTS = (
    mutant(
        "lease-not-checked",
        JUDGE,
        "if not held:",
        "if held is None:",
        "A scheduler that was thought dead places tasks of a job that another plans by now.",
    ),
    mutant(
        "placed-task-placed-again",
        JUDGE,
        "verdicts[~context.unplaced] = Verdict.ALREADY_PLACED",
        "pass",
        "A task runs twice.",
    ),
    mutant(
        "task-placed-twice-at-once",
        JUDGE,
        "if _distinct(task):",
        "if len(task):",
        "A transaction that names a task twice is granted both.",
    ),
    mutant(
        "draining-machine-takes-claims",
        COMMIT_CONTEXT,
        "state != MachineState.OPEN",
        "state > MachineState.DRAINING",
        "A machine that is drained never gets empty.",
    ),
    mutant(
        "gone-machine-only-closed",
        COMMIT_CONTEXT,
        "[state == MachineState.GONE]] = Verdict.GONE",
        "[state == MachineState.GONE]] = Verdict.CLOSED",
        "A scheduler waits for a machine that never comes back.",
    ),
    mutant(
        "stale-not-compared",
        COMMIT_CONTEXT,
        "rows.sequence[at[known]] == seen[known]",
        "rows.sequence[at[known]] >= seen[known]",
        "The sequence rule grants on views of any age.",
    ),
)

FIT = (
    mutant(
        "oversells-by-one",
        JUDGE,
        "short = some_kind(left < 0)",
        "short = some_kind(left < -1)",
        "A machine is sold one unit that it does not have.",
    ),
    mutant(
        "last-unit-never-sold",
        JUDGE,
        "(demand[claim] <= left[at[claim]]).all()",
        "(demand[claim] < left[at[claim]]).all()",
        "No machine is ever filled.",
    ),
    mutant(
        "one-kind-with-room-is-enough",
        JUDGE,
        "<= left[at[claim]]).all()",
        "<= left[at[claim]]).any()",
        "Memory is oversold wherever there are cores left.",
    ),
    mutant(
        "sequence-not-raised",
        "omega/model/machines.py",
        "self.sequence + granted,",
        "self.sequence,",
        "Nobody is ever stale: the sequence rule protects nothing.",
    ),
    mutant(
        "sequence-raised-once-a-claim",
        JUDGE,
        "granted_on[at[verdicts == ACCEPTED]] = True",
        "granted_on = np.bincount(at[verdicts == ACCEPTED], minlength=len(rows))",
        "Stores disagree about what a view has seen.",
    ),
    mutant(
        "fresh-rows-of-alternates-withheld",
        JUDGE,
        "named[rows.where(claims.alternates.machine)] = True",
        "pass",
        "Who was refused tries again on rows that are out of date.",
    ),
)

GANGS = (
    mutant(
        "broken-gang-keeps-amounts",
        JUDGE,
        "mine[granted] = Verdict.GANG_BROKEN",
        "free, mine[granted] = left, Verdict.GANG_BROKEN",
        "Room that nobody has is lost to the jobs behind a broken gang.",
    ),
    mutant(
        "minimum-of-the-job-ignored",
        JUDGE,
        "max(job.minimum, lacking)",
        "job.minimum",
        "Half a gang runs, and waits for the other half while it holds its machines.",
    ),
    mutant(
        "minimum-of-the-transaction-ignored",
        JUDGE,
        "max(job.minimum, lacking)",
        "lacking",
        "A scheduler that asked for all or nothing is granted some.",
    ),
    mutant(
        "grown-gang-still-lacks-its-minimum",
        COMMIT_CONTEXT,
        "self.minimum - self.placed",
        "self.minimum",
        "A gang that runs cannot grow task by task.",
    ),
    mutant(
        "evicted-tasks-still-count-for-the-gang",
        EXCHANGE,
        "int(self._context.placed[number]) - self._lost(part.job, left)",
        "int(self._context.placed[number])",
        "A gang that lost tasks in the same transaction runs below its minimum.",
    ),
)

ALTERNATES = (
    mutant(
        "stale-claim-not-tried-elsewhere",
        JUDGE,
        "Verdict.CLOSED, Verdict.STALE, Verdict.OVERCOMMIT)",
        "Verdict.CLOSED, Verdict.OVERCOMMIT)",
        "Alternates do not help where they would help most.",
    ),
    mutant(
        "alternates-counted-twice",
        EXCHANGE,
        "self.machine[claim] = self._options.machine[option]\n"
        "                return Verdict.ACCEPTED",
        "refusal, self.machine[claim] = Verdict.ACCEPTED, self._options.machine[option]",
        "One task takes room on each of its alternates.",
    ),
    mutant(
        "broken-gang-told-where-it-would-have-landed",
        EXCHANGE,
        "self.machine[part.claims] = self._claims.machine[part.claims]",
        "pass",
        "An outcome names machines on which nothing was granted.",
    ),
)

EVICTIONS = (
    mutant(
        "lease-not-checked-in-order",
        EXCHANGE,
        "if not self._context.lease_held[number]:",
        "if number < 0:",
        "A scheduler that lost its lease need only name somebody to evict.",
    ),
    mutant(
        "equal-precedence-evicted",
        EXCHANGE,
        "precedence[about] < precedence or",
        "precedence[about] <= precedence or",
        "Two jobs of one precedence evict each other for ever.",
    ),
    mutant(
        "own-work-not-moved",
        EXCHANGE,
        "< precedence or self._victims.own[about]",
        "< precedence",
        "A scheduler cannot move its own tasks.",
    ),
    mutant(
        "running-task-sent-to-an-alternate",
        EXCHANGE,
        "Verdict.ACCEPTED or is_placed:",
        "Verdict.ACCEPTED:",
        "A task that could not move runs in two places.",
    ),
    mutant(
        "tasks-not-moved-from-elsewhere",
        EXCHANGE,
        "(is_placed and (job, task) not in named)",
        "is_placed",
        "A task cannot move to a machine on which it takes nobody's place.",
    ),
    mutant(
        "evicts-on-other-machines",
        EXCHANGE,
        "self._at[victim] == at or job == mover",
        "True",
        "Tasks are ended where that makes no room.",
    ),
    mutant(
        "room-elsewhere-counted-here",
        EXCHANGE,
        "these[self._at[these] == at]",
        "these",
        "A machine is oversold by what a gang held on others.",
    ),
    mutant(
        "victim-named-twice-counted-twice",
        EXCHANGE,
        " or victim in these or ",
        " or ",
        "A claim makes room by naming one task twice.",
    ),
    mutant(
        "victim-evicted-by-two-claims",
        EXCHANGE,
        " or not left.live[victim]:",
        ":",
        "Two claims share the room of one task.",
    ),
    mutant(
        "fallen-gang-whose-others-stay",
        EXCHANGE,
        " - lost >= self._victims.minimum[about]",
        " - lost >= 0",
        "What is left of a gang holds its machines and does nothing.",
    ),
    mutant(
        "gang-evicted-that-was-just-granted-to",
        EXCHANGE,
        "and job in self._granted_to",
        "and job < 0",
        "A transaction grows a gang and breaks it.",
    ),
    mutant(
        "broken-gang-keeps-what-it-evicted",
        EXCHANGE,
        "left = self.left.copy()",
        "left = self.left",
        "Tasks are ended for a gang that never ran.",
    ),
    mutant(
        "evicted-task-not-placed-again",
        EXCHANGE,
        "return evicted or bool(",
        "return bool(",
        "A task cannot be moved in one transaction.",
    ),
)

MUTANTS = (*MACHINE_VERDICTS, *FIT, *GANGS, *ALTERNATES, *EVICTIONS)
