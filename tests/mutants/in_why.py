"""Faults in what `omega why` says: the reason, the evidence, and what would help."""

from tests.mutants.mutant import Mutant, Part

mutant = Part("why", ("tests/unit/reports/why",))
BY_SEARCH = ("tests/property/test_why.py",)
BY_SITUATION = ("tests/postgres/test_why.py",)
MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "full-before-its-quota",
        "omega/reports/why/decide.py",
        "find_reason",
        "(_placed, _never, _held, _no_scheduler, «_over_quota, _full», _prefers, _refused,"
        " _waits,)",
        "_full, _over_quota",
        "Whoever frees room for a job waits on, because its quota was used up all the time.",
    ),
    mutant(
        "wins-count-as-defeats",
        "omega/reports/why/decide.py",
        "_refused",
        "if transaction.granted:\n    «break»",
        "continue",
        "A job that won between two defeats is said to have been beaten all the time.",
    ),
    mutant(
        "what-is-protected-yields",
        "omega/reports/why/evictions.py",
        "evictions_for",
        "yields = («occupants.yields_to» <= mine) & strangers\n"
        "low = (occupants.precedence + gap <= mine) & strangers",
        "occupants.precedence",
        "A user waits for evictions that no scheduler may make.",
        BY_SITUATION,
    ),
    mutant(
        "precedence-of-the-step-below",
        "omega/reports/why/evictions.py",
        "_precedence_needed",
        "return int(steps[low])",
        "return int(steps[max(0, low - 1)])",
        "A job is submitted anew with the precedence that `why` names, and still evicts nobody.",
        BY_SEARCH,
    ),
    mutant(
        "gang-needs-one-task-of-its-quota",
        "omega/reports/why/quotas.py",
        "quota_needs",
        "if job.lacking > 1:",
        "if job.lacking > 1_000_000:",
        "A gang is said to have quota enough when there is enough for one task of it.",
    ),
    mutant(
        "quota-raised-by-too-little",
        "omega/reports/why/quotas.py",
        "raised",
        "max(limit, used[budget] + lacking.get(budget, 0))",
        "max(limit, lacking.get(budget, 0))",
        "The command that `why` prints raises a quota, and the job waits on.",
        BY_SITUATION,
    ),
    mutant(
        "funnel-lets-machines-in-again",
        "omega/reports/why/machines.py",
        "funnel",
        "left = left & rule.met",
        "left = rule.met",
        "Machines that a constraint leaves out are counted again as having room.",
        BY_SEARCH,
    ),
    mutant(
        "closed-machine-with-room-is-open",
        "omega/reports/why/suppositions.py",
        "opened",
        "np.where(view.state == MachineState.GONE, view.state, np.int8(MachineState.OPEN))",
        "np.full_like(view.state, MachineState.OPEN)",
        "A user is told to open a machine that has left the cell.",
    ),
)
