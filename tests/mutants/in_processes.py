"""Faults in the life of a scheduler process, and in those who drive it."""

from tests.mutants.mutant import Part

PROCESS = "omega/framework/process.py"
METERING = "omega/framework/attempt_meter.py"
LEASING = "omega/framework/leasing.py"
WAKING = "omega/framework/waking.py"
YIELD_WAKING = "omega/framework/yield_waking.py"
CLEARING = "omega/framework/machine_clearing.py"
EFFECTS = "omega/framework/effects.py"
JOBS = "omega/framework/job_planner.py"
KEPT = "omega/framework/kept_leases.py"
ROUNDS = "omega/framework/round_planner.py"
VIRTUAL = "omega/sim/virtual.py"
ACTOR = "omega/sim/actor.py"
TESTS = ("tests/unit/framework", "tests/unit/sim", "tests/simulation/test_loop.py")
mutant = Part("process", TESTS)
MUTANTS = (
    mutant(
        "never-rescues",
        PROCESS,
        "_housekeep",
        'if «self._rescues.due()»:\nrescued = yield from called("rescue"',
        "False",
        "Jobs of a scheduler that died stay leased for ever.",
    ),
    mutant(
        "stops-too-late",
        PROCESS,
        "_between",
        "return not self.stop.is_set()",
        "return True",
        "A process that is to end goes on until its leased jobs are over.",
    ),
    mutant(
        "keeps-its-leases",
        PROCESS,
        "end",
        '«yield from self._leasing.hand_back(backs)»\nyield from called("forget"',
        "",
        "Jobs of a process that ended cleanly wait until their leases run out.",
    ),
    mutant(
        "plans-what-it-lost",
        JOBS,
        "turn",
        "held = [job for job in together if self._leasing.leases.holds(job)]",
        "held = list(together)",
        "A job whose lease is lost is planned by two.",
    ),
    mutant(
        "waves-wait-for-the-poll-interval",
        JOBS,
        "_settle",
        "if ended:\n«self._idle_s = IDLE_S_MIN»",
        "pass",
        "Once idle, a scheduler looks for the next tasks of a job as rarely as ever.",
    ),
    mutant(
        "kept-before-higher-precedence",
        KEPT,
        "give_way",
        "behind = [kept for kept in self._kept.values() if «rank(kept.job) > self._first»]",
        "False",
        "A job that keeps its lease takes the room for which one of higher precedence is parked.",
    ),
    mutant(
        "kept-by-what-has-ended",
        KEPT,
        "_waits_for_room",
        "return waits and not is_hopeless «and not depends»",
        "",
        "A job that spreads its tasks waits two seconds for a machine that is free.",
    ),
    mutant(
        "kept-and-looked-for-all-the-time",
        KEPT,
        "with_room",
        "if not due «or now_s < self._look_due_s»:",
        "",
        "On a large cell a scheduler that keeps leases spends its time with looks at its view.",
    ),
    mutant(
        "kept-for-ever",
        KEPT,
        "is_over",
        "return now_s - self.placed_s >= WAIT_S «or now_s - self.since_s >= KEPT_S»",
        "",
        "Tasks that were evicted from a job of many short tasks wait until it has no others.",
    ),
    mutant(
        "leases-too-much",
        JOBS,
        "_adapt",
        "if took_s > 2 * CYCLE_S:",
        "if False:",
        "Jobs wait behind a slow decision while other replicas are idle.",
    ),
    mutant(
        "parks-in-silence",
        LEASING,
        "park",
        "self._waker.note([parking.reason for parking in parkings], rooms)",
        "",
        "A job that lost to others stays parked though it has room.",
    ),
    mutant(
        "room-freed-between-checks-missed",
        WAKING,
        "note",
        "self._room = «self._room.lowest(room)»",
        "self._room",
        "A job larger than its cell stays parked after its first tasks have ended.",
    ),
    mutant(
        "locked-job-forgotten",
        WAKING,
        "check",
        "self._held_back = self._held_back «or bool(missed)»",
        "",
        "A job that was locked when room freed stays parked.",
    ),
    mutant(
        "locked-job-taken-as-woken",
        YIELD_WAKING,
        "not_woken",
        "if self._woken.pop(job, None) is not None:\n    self._changed = «True»",
        "self._changed",
        "A job that was locked when tasks arrived that yield to it stays parked.",
    ),
    mutant(
        "used-machine-taken-as-cleared",
        CLEARING,
        "_clear_dead",
        "np.setdiff1d(view.id[is_dead], still_used)",
        "view.id[is_dead]",
        "A task that asks for nothing stays on a dead machine if its job was locked.",
    ),
    mutant(
        "clearing-does-not-rest",
        CLEARING,
        "check",
        "now_s + REST * (now_s - began_s)",
        "now_s",
        "A scheduler that waits for a lock of somebody else plans nothing meanwhile.",
    ),
    mutant(
        "grown-machine-forgotten",
        WAKING,
        "check",
        "self._hopeful = ids if moved else «self._hopeful & ids»",
        "set()",
        "A job that a larger machine would hold stays parked if that machine was full just then.",
    ),
    mutant(
        "decision-time-counts-twice",
        METERING,
        "_answered",
        "thought_s, self._uncommitted_s = self._uncommitted_s, 0.0",
        "thought_s = self._uncommitted_s",
        "The decision time of a refused try is told again with the next.",
    ),
    mutant(
        "decision-time-is-lost",
        METERING,
        "_stop",
        "«self._thought_s += thought_s»\nself._uncommitted_s += thought_s",
        "",
        "Attempts seem to take no decision time.",
    ),
    mutant(
        "errors-end-the-process",
        EFFECTS,
        "drive",
        "except Exception as error:\n«effect = steps.throw(error)»",
        "raise",
        "A memo that is refused ends the rounds.",
    ),
    mutant(
        "time-stands-still",
        ROUNDS,
        "idle_s",
        "return max(1, min(self._poll_ms, self._due_in_ms)) / 1_000",
        "return min(self._poll_ms, self._due_in_ms) / 1_000",
        "In virtual time a process asks for a round that is not due, at one moment, for ever.",
    ),
    mutant(
        "dead-process-goes-on",
        ACTOR,
        "kill",
        'def kill(self) -> None:\n"..."\n«self._steps = None»',
        "return",
        "Who was killed in virtual time goes on.",
    ),
    mutant(
        "no-renewal-in-virtual-time",
        VIRTUAL,
        "run",
        "self.begin(life)\nself._beat_later(life)",
        "self.begin(life)",
        "Who thinks for long loses its jobs to others.",
    ),
    mutant(
        "answers-take-no-time",
        VIRTUAL,
        "_called",
        "if seconds > 0:",
        "if False:",
        "Calls of two processes never interleave.",
    ),
)
