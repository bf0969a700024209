"""Faults in the simulated cell: what its schedulers see, and what is granted in place."""

from tests.mutants.mutant import Part

CELL = "omega/sim/cell.py"
ROWS = "omega/sim/rows.py"
CHANGES = "omega/sim/changes.py"
TESTS = ("tests/property/test_simulated_cell.py", "tests/simulation")
mutant = Part("sim", TESTS)
MUTANTS = (
    mutant(
        "latest-value-shown",
        CHANGES,
        "since",
        "return self.at[since][::-1], [were[since][::-1] for were in self.were]",
        "return self.at[since], [were[since] for were in self.were]",
        "A scheduler sees changes that were made while it thought.",
    ),
    mutant(
        "past-stays",
        ROWS,
        "__exit__",
        "«for column, value in zip(self._columns, self._own, strict=True):»\n"
        "column[self._at] = value",
        "for column, value in zip(self._columns, (), strict=False):",
        "What has changed since somebody looked is undone.",
    ),
    mutant(
        "claims-not-kept",
        ROWS,
        "claim",
        "self._keep(at)\nfor kind, amount in left:",
        "for kind, amount in left:",
        "Nobody conflicts: each sees the claims of all others at once.",
    ),
    mutant(
        "ends-not-kept",
        ROWS,
        "release",
        "self._keep(at)\nfor kind in range(self._kinds):",
        "for kind in range(self._kinds):",
        "A scheduler sees room that became free while it thought.",
    ),
    mutant(
        "own-commits-not-seen",
        ROWS,
        "_since",
        "hidden[before] |= np.isin(at[before], seen)",
        "del before, seen",
        "A second try claims the room of the first once more.",
    ),
    mutant(
        "forgotten-too-soon",
        ROWS,
        "forget",
        "if 2 * log.nth(seen_by_all) >= log.kept:\nlog.drop(«seen_by_all»)",
        "log.number",
        "Who thinks for long sees a mixture of then and now.",
        borrows=(ROWS, "look = Look(self._log.number)"),
    ),
    mutant(
        "sequences-not-compared",
        CELL,
        "_fit_together",
        "claims.seen if transaction.rule is ConflictRule.SEQUENCE else None",
        "None",
        "Runs by the sequence rule conflict as rarely as by the fit rule.",
    ),
    mutant(
        "half-a-gang-in-place",
        CELL,
        "_fit_together",
        "or len(claims) < max(part.grants_min, job.lacking)",
        "",
        "Half a gang runs, and waits for the other half while it holds its machines.",
    ),
    mutant(
        "closed-machine-claimed",
        ROWS,
        "claim",
        "or not holds(self._open[at])",
        "",
        "Tasks are placed on machines that are down.",
    ),
    mutant(
        "times-not-counted",
        ROWS,
        "claim",
        "amount = self._free[:, kind][at] - times * int(demand[kind])",
        "amount = self._free[:, kind][at] - int(demand[kind])",
        "A machine is sold twice within one transaction.",
    ),
)
