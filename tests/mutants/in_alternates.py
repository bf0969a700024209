"""Faults in the choice of alternates."""

from tests.mutants.mutant import Part

ALTERNATES = "omega/placement/alternates.py"
TESTS = (
    "tests/unit/placement/test_alternates.py",
    "tests/unit/schedulers/test_batch.py",
    "tests/simulation/test_audit.py",
)
mutant = Part("alternates", TESTS)
MUTANTS = (
    mutant(
        "claims-not-subtracted",
        ALTERNATES,
        "_with",
        "with view.tentative():\n    «view.assume_claims(claims)»",
        "pass",
        "An alternate is a machine that the job's own claims have filled.",
    ),
    mutant(
        "own-machine-named",
        ALTERNATES,
        "_without",
        "(its.tasks > 0) & ~np.isin(its.view.id[its.at], claimed)",
        "its.tasks > 0",
        "A claim is tried again on the machine that has just refused it.",
    ),
    mutant(
        "other-failure-domain",
        ALTERNATES,
        "_of_group",
        "view.codes[its.at, column] == one",
        "view.codes[its.at, column] >= 0",
        "A task that is to be spread lands beside the others of its job.",
    ),
    mutant(
        "different-machines-shared",
        ALTERNATES,
        "_Search.rows_for",
        "if «its.task_group.different_machines»:\n    for first in range(0, len(slots), claims):",
        "its.task_group is None",
        "Two tasks that are to run on different machines land on one.",
    ),
    mutant(
        "second-best-first",
        ALTERNATES,
        "_alternates",
        "«first.sort()»\norder = first[np.argsort(claim[first], kind='stable')]",
        "pass",
        "A refused claim is tried on a worse machine before a better one.",
    ),
    mutant(
        "compiled-without-alternates",
        "schedulers/batch.py",
        "places_at_random",
        "not self.alternates and super().places_at_random(job)",
        "super().places_at_random(job)",
        "A simulation in compiled loops shows more conflicts than there would be.",
    ),
    mutant(
        "audit-sees-own-machines",
        "omega/sim/cell.py",
        "commit",
        "judge(self.view.at(claims.machines), transaction, context)",
        "judge(self.view.at(claims.machines[: len(claims)]), transaction, context)",
        "The paper's experiments refuse every alternate as a machine that is gone.",
    ),
)
