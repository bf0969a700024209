"""Faults in the compiled loops of simulations, and in what may be compiled."""

from tests.mutants.mutant import Mutant

KERNELS = "omega/sim/kernels.py"
ROWS = "omega/sim/compiled_rows.py"
TESTS = ("tests/property/test_compiled.py", "tests/property/test_simulated_cell.py")


def mutant(name: str, file: str, before: str, after: str, why: str) -> Mutant:
    """Return a mutant of the compiled loops."""
    return Mutant(
        name=f"compiled.{name}", file=file, before=before, after=after, why=why, tests=TESTS
    )


MUTANTS = (
    mutant(
        "nothing-drawn",
        KERNELS,
        "    if not drawn:\n        return NOT_CLAIMED\n",
        "    return NOT_CLAIMED\n",
        "Compiled simulations are slower than uncompiled ones.",
    ),
    mutant(
        "log-not-grown",
        ROWS,
        "        log.make_room(changes)\n",
        "        del changes\n",
        "Runs of any size end with an error, or with the process.",
    ),
    mutant(
        "draws-on-the-present",
        KERNELS,
        "    first, end, keeps = changes\n",
        "    first, end, keeps = changes[1], changes[1], changes[2]\n",
        "Compiled schedulers see what was claimed while they thought, and never conflict.",
    ),
    mutant(
        "present-restored-in-reverse",
        KERNELS,
        "    for nth in range(first, end):\n",
        "    for nth in range(end - 1, first - 1, -1):\n",
        "A row that changed twice while somebody thought comes back as something else.",
    ),
    mutant(
        "sequence-not-compared",
        KERNELS,
        "        if rows.sequence[machine[nth]] != seen[nth]:\n",
        "        if rows.sequence[machine[nth]] < seen[nth]:\n",
        "Compiled runs by the sequence rule conflict as rarely as by the fit rule.",
    ),
    mutant(
        "fit-not-checked",
        KERNELS,
        "    if not _fit_together(rows, demand, machine):\n        return NOT_CLAIMED\n",
        "",
        "Compiled schedulers sell what others have taken while they thought.",
    ),
    mutant(
        "tasks-fit-one-by-one",
        KERNELS,
        "        tasks = tasks + 1 if nth and machine[nth - 1] == at else 1\n",
        "        tasks = 1\n",
        "Two tasks are granted where one fits.",
    ),
    mutant(
        "draws-not-counted",
        KERNELS,
        "            tasks = scratch.taken[at] + 1\n",
        "            tasks = 1\n",
        "A job draws a machine more often than it has room, and falls back on the slow way.",
    ),
    mutant(
        "draws-remembered",
        KERNELS,
        "        scratch.taken[machine[nth]] = 0\n",
        "        scratch.taken[machine[nth]] += 0\n",
        "A machine that was drawn once seems to hold the task for ever.",
    ),
    mutant(
        "changes-not-kept",
        KERNELS,
        "    return claim(rows, kept, end if keeps else NOTHING_KEPT, demand, seen, machine)\n",
        "    return claim(rows, kept, NOTHING_KEPT, demand, seen, machine)\n",
        "Others see a compiled claim before they have looked again.",
    ),
    mutant(
        "ends-not-kept",
        ROWS,
        "        self._end_at(kernels.release(self._rows, kept, self._end, demand, at))\n",
        "        kernels.release(self._rows, kept, NOTHING_KEPT, demand, at)\n",
        "Compiled schedulers see room that became free while they thought.",
    ),
    mutant(
        "unfair-integers",
        KERNELS,
        "        while (product & UINT32_MAX) < threshold:\n",
        "        while (product & UINT32_MAX) < np.uint64(0):\n",
        "Some machines are drawn more often than others, and never as uncompiled.",
    ),
    mutant(
        "half-a-draw-thrown-away",
        KERNELS,
        "    state[4] = ONE\n",
        "    state[4] = np.uint64(0)\n",
        "Compiled and uncompiled runs draw other machines.",
    ),
    mutant(
        "offer-kept-by-both",
        KERNELS,
        "            free[at, kind] = 0\n",
        "            free[at, kind] += 0\n",
        "What is taken back of an offer is offered twice.",
    ),
    mutant(
        "everybody-draws",
        "omega/framework/scheduler.py",
        "        return is_random_first_fit(self.place)\n",
        "        return True\n",
        "A stranger's scheduler is simulated as random placement.",
    ),
    mutant(
        "constraints-are-plain",
        "omega/model/jobs.py",
        "self.gpus or self.constraints or self.spread_over or self.different_machines",
        "self.gpus or self.spread_over or self.different_machines",
        "Tasks run on machines that do not meet their constraints.",
    ),
    mutant(
        "two-groups-are-plain",
        "omega/model/jobs.py",
        "len(self.groups) == 1 and self.groups[0].is_plain",
        "self.groups[0].is_plain",
        "Tasks of the second group are given what those of the first ask for.",
    ),
    mutant(
        "attempt-not-counted",
        "omega/sim/agent.py",
        "        job.attempts += 1\n        self._claimed = True\n",
        "        self._claimed = True\n",
        "Compiled runs report fewer attempts.",
    ),
)
