"""Faults in the choice of who makes way."""

from tests.mutants.mutant import Mutant

VICTIMS = "omega/placement/victims.py"
LOOKS = "omega/placement/looks.py"
ATTEMPT = "omega/framework/attempt.py"
WAKING = "omega/framework/yield_waking.py"
ROUND_EVICTIONS = "omega/framework/round_evictions.py"
OF_ROUNDS = (
    "tests/unit/schedulers/ml_gpu/test_live_evictions.py",
    "tests/unit/framework/test_round_commit.py",
)
TESTS = (
    "tests/unit/placement/test_victims.py",
    "tests/unit/placement/test_looks.py",
    "tests/unit/framework/test_yield_waking.py",
    "tests/property/test_victims.py",
    "tests/simulation/test_preemption.py",
    "tests/simulation/test_making_way.py",
)


def mutant(
    name: str,
    file: str,
    function: str,
    before: str,
    after: str,
    why: str,
    *,
    tests: tuple[str, ...] = TESTS,
) -> Mutant:
    """Return a mutant of preemption."""
    return Mutant(
        name=f"victims.{name}",
        file=file,
        function=function,
        before=before,
        after=after,
        why=why,
        tests=tests,
    )


MUTANTS = (
    mutant(
        "names-those-who-stay",
        VICTIMS,
        "__init__",
        "occupants.yields_to <= job.spec.precedence",
        "occupants.yields_to >= 0",
        "A scheduler names victims that the database refuses, and finds no others.",
    ),
    mutant(
        "many-of-low-rank",
        VICTIMS,
        "_options",
        "len(victims) * PER_TASK + int(self._rank[victims].sum())",
        "int(self._rank[victims].sum())",
        "Several tasks are evicted where one would be enough.",
    ),
    mutant(
        "oldest-first",
        VICTIMS,
        "__init__",
        "-occupants.started_ms, occupants.precedence[of]",
        "occupants.started_ms, occupants.precedence[of]",
        "The task that has run longest loses its work.",
    ),
    mutant(
        "precedence-not-ranked",
        VICTIMS,
        "__init__",
        "-occupants.started_ms, «occupants.precedence[of]»",
        "0 * occupants.precedence[of]",
        "A task is evicted while one of lower precedence runs on.",
    ),
    mutant(
        "gang-counts-as-one",
        VICTIMS,
        "_plan",
        "int(self._occupants.running[g]) * PER_TASK",
        "PER_TASK",
        "A whole gang falls where two single tasks would be enough.",
    ),
    mutant(
        "gang-broken-singly",
        VICTIMS,
        "_broken",
        "len(victims) > self._slack[number]",
        "len(victims) > self._slack[number] + 1",
        "A gang falls that was counted as one task.",
    ),
    mutant(
        "fallen-gang-named-again",
        VICTIMS,
        "place",
        "if spared < 0:",
        "if spared < -99:",
        "A claim names tasks that have fallen with their gang, and is refused.",
    ),
    mutant(
        "evicts-beside-room",
        ATTEMPT,
        "_assuming",
        "for some in claims:\n    «view.assume_claims(some)»",
        "pass",
        "Room is claimed twice: once as it is, and once beside evictions.",
    ),
    mutant(
        "gangs-of-a-machine-tried-singly",
        VICTIMS,
        "_best",
        "not better and best.tasks < wanted",
        "not better and wanted < 0",
        "A job waits on a cell of small gangs, of which two would have to make way.",
    ),
    mutant(
        "only-drawn-machines",
        ATTEMPT,
        "_make_way",
        "if len(np.setdiff1d(known, machines)):",
        "if len(np.setdiff1d(known, machines)) < 0:",
        "On a large cell a job is parked although a machine that was not drawn yields.",
    ),
    mutant(
        "gang-searched-in-vain",
        LOOKS,
        "machines_that_yield",
        "if not has_room(view, job):",
        "if job is None:",
        "For a gang that nothing suffices for, who runs on a thousand machines is read.",
    ),
    mutant(
        "free-room-not-counted-as-yielding",
        LOOKS,
        "machines_that_yield",
        "view.assume_removed(yielding.machine, yielding.amounts)",
        "yielding.machine",
        "A job is parked although others would make way for it.",
    ),
    mutant(
        "arrivals-unnoticed",
        WAKING,
        "is_due",
        "(view.sequence > self._sequence).any()",
        "(view.sequence > self._sequence).all()",
        "A job stays parked while the cell fills with tasks that yield to it.",
    ),
    mutant(
        "gap-unnoticed",
        WAKING,
        "is_due",
        "view.generation != self._generation",
        "view.generation < self._generation",
        "The owner lowers the gap, and nobody is woken.",
    ),
    mutant(
        "woken-again-and-again",
        WAKING,
        "_was_tried",
        "self._woken[job].state == state",
        "self._woken[job].state < state[:0]",
        "A job that cannot be placed is woken, attempted and parked for ever.",
    ),
    mutant(
        "woken-without-a-rest",
        WAKING,
        "_has_rested",
        "self._looks >= self._woken[job].from_look",
        "self._looks >= 0",
        "On a busy cell a job that cannot be placed is attempted all the time.",
    ),
    mutant(
        "never-looked-at-again",
        WAKING,
        "_fit",
        "self._changed = True",
        "self._changed = self._changed",
        "A job that rested when others made way for it is never woken.",
    ),
    mutant(
        "lower-precedences-never-looked-at",
        WAKING,
        "look",
        "if len(yielding) and left[-1].spec.precedence < precedence:\n"
        "    «self._above = precedence»",
        "pass",
        "A job waits for ever behind one of higher precedence that nobody makes way for.",
    ),
    mutant(
        "looks-without-end",
        WAKING,
        "look",
        "now_s + REST * (now_s - self._began_s)",
        "now_s - self._began_s + self._began_s",
        "On a large cell a scheduler reads what yields, and does nothing else.",
    ),
    mutant(
        "round-evicts-its-own-kind",
        ROUND_EVICTIONS,
        "_may_go",
        "its == kind",
        "its == kind[:0]",
        "A round evicts what its own scheduler has placed beside it.",
        tests=OF_ROUNDS,
    ),
    mutant(
        "round-evicts-who-holds-gpus",
        ROUND_EVICTIONS,
        "_may_go",
        "kept[of[(occupants.amounts[:, DEVICES] > 0).any(axis=1)]] = «True»",
        "False",
        "A job loses the GPUs that no round has counted as its own.",
        tests=OF_ROUNDS,
    ),
    mutant(
        "round-names-a-fallen-gang-again",
        ROUND_EVICTIONS,
        "_evicted",
        "range(2)",
        "range(1)",
        "The claims of a second gang name tasks that fell for the first one, and are refused.",
        tests=OF_ROUNDS,
    ),
    mutant(
        "parked-round-job-left-parked",
        "omega/framework/round_planner.py",
        "_woken",
        "if one.id in away and «one.reason is ParkReason.NO_ROOM»",
        "one.reason is not ParkReason.NO_ROOM",
        "A gang for which nobody made way is not planned again before room is free for all of it.",
        tests=OF_ROUNDS,
    ),
)
