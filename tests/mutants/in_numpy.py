"""Faults in the judge that the memory store and the simulator use."""

from tests.mutants.mutant import Part

JUDGE = "omega/cell/judge.py"
EXCHANGE = "omega/cell/judge_sequential.py"
COMMIT_CONTEXT = "omega/cell/commit_context.py"
TESTS = (
    "tests/contract/test_memory_store.py",
    "tests/unit/cell",
    "tests/property/test_judge.py",
    "tests/property/test_memory_store.py",
)
mutant = Part("numpy", TESTS)
CHECKS = (
    mutant(
        "lease-not-checked",
        JUDGE,
        "_before_fit",
        "if not held:",
        "if held is None:",
        "A scheduler that was thought dead places tasks of a job that another plans by now.",
    ),
    mutant(
        "placed-task-placed-again",
        JUDGE,
        "_before_fit",
        "verdicts[~context.unplaced] = Verdict.ALREADY_PLACED",
        "pass",
        "A task runs twice.",
    ),
    mutant(
        "task-placed-twice-at-once",
        JUDGE,
        "_serve",
        "if _distinct(task):",
        "if len(task):",
        "A transaction that names a task twice is granted both.",
    ),
    mutant(
        "draining-machine-takes-claims",
        COMMIT_CONTEXT,
        "machine_verdicts",
        "state != MachineState.OPEN",
        "state > MachineState.OPEN + 1",
        "A machine that is drained never gets empty.",
    ),
    mutant(
        "gone-machine-only-closed",
        COMMIT_CONTEXT,
        "machine_verdicts",
        "Verdict.CLOSED\nverdicts[np.flatnonzero(known)[state == MachineState.GONE]] = "
        "«Verdict.GONE»",
        "Verdict.CLOSED",
        "A scheduler waits for a machine that never comes back.",
    ),
    mutant(
        "stale-not-compared",
        COMMIT_CONTEXT,
        "machine_verdicts",
        "rows.sequence[at[known]] == seen[known]",
        "rows.sequence[at[known]] >= seen[known]",
        "The sequence rule grants on views of any age.",
    ),
)

FIT = (
    mutant(
        "oversells-by-one",
        JUDGE,
        "_serve",
        "short = any_kind(left < 0)",
        "short = any_kind(left < -1)",
        "A machine is sold one unit that it does not have.",
    ),
    mutant(
        "last-unit-never-sold",
        JUDGE,
        "_walk",
        "(demand[claim] <= left[at[claim]]).all()",
        "(demand[claim] < left[at[claim]]).all()",
        "No machine is ever filled.",
    ),
    mutant(
        "one-kind-with-room-is-enough",
        JUDGE,
        "_walk",
        "<= left[at[claim]]).all()",
        "<= left[at[claim]]).any()",
        "Memory is oversold wherever there are cores left.",
    ),
    mutant(
        "sequence-not-raised",
        "omega/model/machines.py",
        "after_commit",
        "used, «self.sequence + granted», self.revision + touched",
        "self.sequence",
        "Nobody is ever stale: the sequence rule protects nothing.",
    ),
    mutant(
        "sequence-raised-once-a-claim",
        JUDGE,
        "judge",
        "granted_on = np.zeros(len(rows), dtype=np.bool_)\n«granted_on[at[verdicts == "
        "ACCEPTED]] = True»",
        "granted_on = np.bincount(at[verdicts == ACCEPTED], None, len(rows))",
        "Stores disagree about what a view has seen.",
    ),
    mutant(
        "fresh-rows-of-alternates-withheld",
        JUDGE,
        "judge",
        "named[rows.where(claims.alternates.machine)] = True",
        "pass",
        "Who was refused tries again on rows that are out of date.",
    ),
)

GANGS = (
    mutant(
        "broken-gang-keeps-amounts",
        JUDGE,
        "judge",
        "free = left\nelse:\n«mine[granted] = Verdict.GANG_BROKEN»",
        "free, mine[granted] = left, Verdict.GANG_BROKEN",
        "Room that nobody has is lost to the jobs behind a broken gang.",
    ),
    mutant(
        "minimum-of-the-job-ignored",
        JUDGE,
        "judge",
        "max(job.grants_min, lacking)",
        "job.grants_min",
        "Half a gang runs, and waits for the other half while it holds its machines.",
    ),
    mutant(
        "minimum-of-the-transaction-ignored",
        JUDGE,
        "judge",
        "max(job.grants_min, lacking)",
        "lacking",
        "A scheduler that asked for all or nothing is granted some.",
    ),
    mutant(
        "grown-gang-still-lacks-its-minimum",
        COMMIT_CONTEXT,
        "lacking",
        "self.minimum - self.placed",
        "self.minimum",
        "A gang that runs cannot grow task by task.",
    ),
    mutant(
        "evicted-tasks-still-count-for-the-gang",
        EXCHANGE,
        "judge_job",
        "int(self._context.placed[number]) - self._lost(part.job, left)",
        "int(self._context.placed[number])",
        "A gang that lost tasks in the same transaction runs below its minimum.",
    ),
)

ALTERNATES = (
    mutant(
        "stale-claim-not-tried-elsewhere",
        JUDGE,
        "_needs_an_alternate",
        "Verdict.CLOSED, Verdict.STALE, Verdict.OVERCOMMIT)",
        "Verdict.CLOSED, Verdict.OVERCOMMIT)",
        "Alternates do not help where they would help most.",
    ),
    mutant(
        "alternates-counted-twice",
        EXCHANGE,
        "_weigh",
        "«self.machine[claim] = self._options.machine[option]\nreturn Verdict.ACCEPTED»\n"
        "return verdict",
        "verdict, self.machine[claim] = Verdict.ACCEPTED, self._options.machine[option]",
        "One task takes room on each of its alternates.",
    ),
    mutant(
        "broken-gang-told-where-it-would-have-landed",
        EXCHANGE,
        "judge_job",
        "self.machine[part.claims] = self._claims.machine[part.claims]",
        "pass",
        "An outcome names machines on which nothing was granted.",
    ),
)

EVICTIONS = (
    mutant(
        "lease-not-checked-in-order",
        EXCHANGE,
        "_weigh",
        "if not self._context.lease_held[number]:",
        "if number < 0:",
        "A scheduler that lost its lease need only name somebody to evict.",
    ),
    mutant(
        "gap-one-too-wide",
        EXCHANGE,
        "_may_evict",
        "yields_to[at] <= precedence",
        "yields_to[at] < precedence",
        "A job whose precedence is higher by just the gap finds no victims.",
    ),
    mutant(
        "own-work-not-moved",
        EXCHANGE,
        "_may_evict",
        "yields or self._victims.own[number, at]",
        "yields",
        "A scheduler cannot move its own tasks.",
    ),
    mutant(
        "own-work-of-any-claimant",
        EXCHANGE,
        "_may_evict",
        "yields or self._victims.own[number, at]",
        "yields or self._victims.own[:, at].any()",
        "A job of another scheduler evicts tasks that do not yield to it.",
    ),
    mutant(
        "running-task-sent-to-an-alternate",
        EXCHANGE,
        "_weigh",
        "Verdict.ACCEPTED or is_placed:",
        "Verdict.ACCEPTED:",
        "A task that could not move runs in two places.",
    ),
    mutant(
        "tasks-not-moved-from-elsewhere",
        EXCHANGE,
        "_weigh",
        "(is_placed and (job, task) not in named)",
        "is_placed",
        "A task cannot move to a machine on which it takes nobody's place.",
    ),
    mutant(
        "evicts-on-other-machines",
        EXCHANGE,
        "_evicted_by",
        "self._at[victim] == at or job == claimant_job",
        "True",
        "Tasks are ended where that makes no room.",
    ),
    mutant(
        "room-elsewhere-counted-here",
        EXCHANGE,
        "_take",
        "these[self._at[these] == at]",
        "these",
        "A machine is oversold by what a gang held on others.",
    ),
    mutant(
        "victim-named-twice-counted-twice",
        EXCHANGE,
        "_evicted_by",
        "or victim in these or",
        "or",
        "A claim makes room by naming one task twice.",
    ),
    mutant(
        "victim-evicted-by-two-claims",
        EXCHANGE,
        "_evicted_by",
        "or not left.live[victim]:",
        ":",
        "Two claims share the room of one task.",
    ),
    mutant(
        "fallen-gang-whose-others-stay",
        EXCHANGE,
        "_rest_of_broken_gang",
        "- lost >= self._victims.minimum[at]",
        "- lost >= 0",
        "What is left of a gang holds its machines and does nothing.",
    ),
    mutant(
        "gang-evicted-that-was-just-granted-to",
        EXCHANGE,
        "_may_evict",
        "and job in self._granted_to",
        "and job < 0",
        "A transaction grows a gang and breaks it.",
    ),
    mutant(
        "broken-gang-keeps-what-it-evicted",
        EXCHANGE,
        "judge_job",
        "left = self.left.copy()",
        "left = self.left",
        "Tasks are ended for a gang that never ran.",
    ),
    mutant(
        "evicted-task-not-placed-again",
        EXCHANGE,
        "_is_unplaced",
        "return evicted or bool(",
        "return bool(",
        "A task cannot be moved in one transaction.",
    ),
)

MUTANTS = (*CHECKS, *FIT, *GANGS, *ALTERNATES, *EVICTIONS)
