"""Faults in the choice of who makes way."""

from tests.mutants.mutant import Mutant

VICTIMS = "omega/placement/victims.py"
ATTEMPT = "omega/framework/attempt.py"
ROUND_EVICTIONS = "omega/framework/round_evictions.py"
OF_ROUNDS = (
    "tests/unit/schedulers/ml_gpu/test_live_evictions.py",
    "tests/unit/framework/test_round_commit.py",
)
TESTS = (
    "tests/unit/placement/test_victims.py",
    "tests/property/test_victims.py",
    "tests/simulation/test_preemption.py",
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
        "_make_way",
        "for others in claims:\n    «view.assume_claims(others)»",
        "pass",
        "Room is claimed twice: once as it is, and once beside evictions.",
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
