"""Faults in the life of a scheduler process, and in those who drive it."""

from tests.mutants.mutant import Mutant

PROCESS = "omega/framework/process.py"
METERING = "omega/framework/metering.py"
LEASING = "omega/framework/leasing.py"
EFFECTS = "omega/framework/effects.py"
JOBS = "omega/framework/job_by_job.py"
ROUNDS = "omega/framework/by_rounds.py"
VIRTUAL = "omega/sim/virtual.py"
ACTOR = "omega/sim/actor.py"
TESTS = ("tests/unit/framework", "tests/unit/sim", "tests/simulation/test_loop.py")


def mutant(name: str, file: str, before: str, after: str, why: str) -> Mutant:
    """Return a mutant of a process."""
    name = f"process.{name}"
    return Mutant(name=name, file=file, before=before, after=after, why=why, tests=TESTS)


MUTANTS = (
    mutant(
        "never-rescues",
        PROCESS,
        "        if self._rescues.due():\n",
        "        if False:\n",
        "Jobs of a scheduler that died stay leased for ever.",
    ),
    mutant(
        "stops-too-late",
        PROCESS,
        "        return not self.stop.is_set()\n",
        "        return True\n",
        "A process that is to end goes on until its leased jobs are over.",
    ),
    mutant(
        "keeps-its-leases",
        PROCESS,
        "        yield from self._leasing.hand_back(backs)\n",
        "",
        "Jobs of a process that ended cleanly wait until their leases run out.",
    ),
    mutant(
        "plans-what-it-lost",
        JOBS,
        "            held = [job for job in together if self._leasing.leases.holds(job)]\n",
        "            held = list(together)\n",
        "A job whose lease is lost is planned by two.",
    ),
    mutant(
        "leases-too-much",
        JOBS,
        "        if took_s > 2 * TURN_S:\n",
        "        if False:\n",
        "Jobs wait behind a slow decision while other replicas are idle.",
    ),
    mutant(
        "parks-in-silence",
        LEASING,
        "        self._waker.note([parking.reason for parking in parkings])\n",
        "",
        "A job that lost to others stays parked though it has room.",
    ),
    mutant(
        "decision-time-counts-twice",
        METERING,
        "            thought_s, self._uncommitted_s = self._uncommitted_s, 0.0\n",
        "            thought_s = self._uncommitted_s\n",
        "The decision time of a refused try is told again with the next.",
    ),
    mutant(
        "decision-time-is-lost",
        METERING,
        "        self._thought_s += thought_s\n",
        "",
        "Attempts seem to take no decision time.",
    ),
    mutant(
        "errors-end-the-process",
        EFFECTS,
        "                    effect = steps.throw(error)\n",
        "                    raise\n",
        "A memo that is refused ends the rounds.",
    ),
    mutant(
        "time-stands-still",
        ROUNDS,
        "        return max(1, min(self._poll_ms, self._due_in_ms)) / 1_000\n",
        "        return min(self._poll_ms, self._due_in_ms) / 1_000\n",
        "In virtual time a process asks for a round that is not due, at one moment, for ever.",
    ),
    mutant(
        "dead-process-goes-on",
        ACTOR,
        "        self._steps = None  # what it asks from now on has no answer\n",
        "        return\n",
        "Who was killed in virtual time goes on.",
    ),
    mutant(
        "no-renewal-in-virtual-time",
        VIRTUAL,
        "        self.begin(life)\n        self._beat_later(life)\n",
        "        self.begin(life)\n",
        "Who thinks for long loses its jobs to others.",
    ),
    mutant(
        "answers-take-no-time",
        VIRTUAL,
        "        if seconds > 0:\n",
        "        if False:\n",
        "Calls of two processes never interleave.",
    ),
)
