"""Faults in the compiled loops of simulations, and in what may be compiled."""

from tests.mutants.mutant import Mutant

KERNELS = "omega/sim/kernels.py"
ROWS = "omega/sim/compiled_rows.py"
TESTS = ("tests/property/test_compiled.py", "tests/property/test_simulated_cell.py")


def mutant(
    name: str,
    file: str,
    function: str,
    before: str,
    after: str,
    why: str,
    *,
    borrows: tuple[str, str] | None = None,
) -> Mutant:
    """Return a mutant of the compiled loops."""
    return Mutant(
        name=f"compiled.{name}",
        file=file,
        function=function,
        before=before,
        after=after,
        why=why,
        tests=TESTS,
        borrows=borrows,
    )


MUTANTS = (
    mutant(
        "nothing-drawn",
        KERNELS,
        "draw_and_claim",
        "if not drawn:\nreturn NOT_CLAIMED",
        "return NOT_CLAIMED",
        "Compiled simulations are slower than uncompiled ones.",
    ),
    mutant(
        "log-not-grown",
        ROWS,
        "_room_for",
        "«log.reserve(changes)»\nreturn RowHistory(log.at, *log.were)",
        "del changes",
        "Runs of any size end with an error, or with the process.",
    ),
    mutant(
        "draws-on-the-present",
        KERNELS,
        "draw_and_claim",
        "first, end, keeps = changes",
        "first, end, keeps = changes[1], changes[1], changes[2]",
        "Compiled schedulers see what was claimed while they thought, and never conflict.",
    ),
    mutant(
        "present-restored-in-reverse",
        KERNELS,
        "draw_and_claim",
        "for nth in range(first, end):",
        "for nth in range(end - 1, first - 1, -1):",
        "A row that changed twice while somebody thought comes back as something else.",
    ),
    mutant(
        "sequence-not-compared",
        KERNELS,
        "claim",
        "if rows.sequence[machine[nth]] != seen[nth]:",
        "if rows.sequence[machine[nth]] < seen[nth]:",
        "Compiled runs by the sequence rule conflict as rarely as by the fit rule.",
    ),
    mutant(
        "fit-not-checked",
        KERNELS,
        "claim",
        "if not _fit_together(rows, demand, machine):\nreturn NOT_CLAIMED",
        "",
        "Compiled schedulers sell what others have taken while they thought.",
    ),
    mutant(
        "tasks-fit-one-by-one",
        KERNELS,
        "_fit_together",
        "tasks = tasks + 1 if nth and machine[nth - 1] == at else 1",
        "tasks = 1",
        "Two tasks are granted where one fits.",
    ),
    mutant(
        "draws-not-counted",
        KERNELS,
        "_draw",
        "tasks = scratch.taken[at] + 1",
        "tasks = 1",
        "A job draws a machine more often than it has room, and falls back on the slow way.",
    ),
    mutant(
        "draws-remembered",
        KERNELS,
        "_draw",
        "scratch.taken[machine[nth]] = 0",
        "scratch.taken[machine[nth]] += 0",
        "A machine that was drawn once seems to hold the task for ever.",
    ),
    mutant(
        "changes-not-kept",
        KERNELS,
        "draw_and_claim",
        "return claim(rows, kept, end if keeps else NOTHING_KEPT, demand, seen, machine)",
        "return claim(rows, kept, NOTHING_KEPT, demand, seen, machine)",
        "Others see a compiled claim before they have looked again.",
    ),
    mutant(
        "ends-not-kept",
        ROWS,
        "release_one_shape",
        "self._end_at(kernels.release(self._rows, kept, self._end, demand, at))",
        "kernels.release(self._rows, kept, NOTHING_KEPT, demand, at)",
        "Compiled schedulers see room that became free while they thought.",
        borrows=(ROWS, "return self._log.kept if self._looks else NOTHING_KEPT"),
    ),
    mutant(
        "unfair-integers",
        KERNELS,
        "draw_below",
        "while (product & UINT32_MAX) < threshold:",
        "while (product & UINT32_MAX) < np.uint64(0):",
        "Some machines are drawn more often than others, and never as uncompiled.",
    ),
    mutant(
        "half-a-draw-thrown-away",
        KERNELS,
        "_draw_32",
        "state[4] = ONE",
        "state[4] = np.uint64(0)",
        "Compiled and uncompiled runs draw other machines.",
    ),
    mutant(
        "offer-kept-by-both",
        KERNELS,
        "move_free",
        "free[at, kind] = 0",
        "free[at, kind] += 0",
        "What is taken back of an offer is offered twice.",
    ),
    mutant(
        "everybody-draws",
        "omega/framework/scheduler.py",
        "places_at_random",
        "return is_random_first_fit(self.place)",
        "return True",
        "A stranger's scheduler is simulated as random placement.",
    ),
    mutant(
        "constraints-are-plain",
        "omega/model/jobs.py",
        "TaskGroup.is_plain",
        "self.gpus or self.constraints or self.spread_over or self.different_machines",
        "self.gpus or self.spread_over or self.different_machines",
        "Tasks run on machines that do not meet their constraints.",
    ),
    mutant(
        "two-groups-are-plain",
        "omega/model/jobs.py",
        "JobSpec.is_plain",
        "len(self.groups) == 1 and self.groups[0].is_plain",
        "self.groups[0].is_plain",
        "Tasks of the second group are given what those of the first ask for.",
    ),
    mutant(
        "attempt-not-counted",
        "omega/sim/cell_actor.py",
        "_draw",
        "job.attempts += 1\nself._claimed = True",
        "self._claimed = True",
        "Compiled runs report fewer attempts.",
    ),
)
