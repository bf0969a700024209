"""Faults in the prices of machines, and in what tasks of late asked for by their constraints."""

from tests.mutants.mutant import Mutant, Part

DEMAND = "omega/cell/demand.py"
SCARCITY = "omega/placement/scarcity.py"
OF_DEMAND = ("tests/unit/cell/test_demand.py",)
mutant = Part("scarcity", ("tests/unit/placement/test_scarcity.py",))
MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "first-jobs-count-for-ever",
        DEMAND,
        "DemandTally.count",
        "self._weight «*= self._growth»",
        "*= 1.0",
        "Placement leaves machines to tasks that nobody submits any more.",
        OF_DEMAND,
    ),
    mutant(
        "rare-constraints-count",
        DEMAND,
        "DemandTally.demand",
        "counts = _shares(amounts) «>= share_min»",
        ">= 0",
        "One odd job tells machines apart for all that follow.",
        OF_DEMAND,
    ),
    mutant(
        "newest-constraints-are-dropped",
        DEMAND,
        "DemandTally._sums_of",
        "least = int(_shares(«np.array(list(self._sums.values()))»).argmin())",
        "-np.array(list(self._sums.values()))",
        "What most tasks need is forgotten when many kinds of constraints come.",
        OF_DEMAND,
    ),
    mutant(
        "free-on-closed-machines",
        SCARCITY,
        "_free",
        "if «not holds(view.open)»:",
        "False",
        "Machines that are drained make those that are left look cheap.",
    ),
    mutant(
        "price-of-the-cpu-alone",
        SCARCITY,
        "prices",
        "with_gpus = eligible.meets @ «costs.max(axis=1)»",
        "costs[:, 0]",
        "Machines whose GPUs are wanted by all look cheap, since nobody needs their CPU.",
    ),
    mutant(
        "every-price-is-a-rank",
        SCARCITY,
        "_ranked",
        "level, limit = level + 1, price[one] * «(1 + NEARLY)»",
        "1.0",
        "Tasks break into empty machines although others cost nearly the same.",
    ),
    mutant(
        "dear-machines-first",
        SCARCITY,
        "_ranked",
        "for one in present[np.argsort(«price[present]», kind='stable')].tolist():",
        "-price[present]",
        "Tasks with a choice take the machines that others must have.",
    ),
    mutant(
        "dear-machines-are-filled-with-cheap-ones",
        SCARCITY,
        "cheap_first",
        "given = np.where(rank «<» dearest, room.tasks, 0)",
        "<=",
        "More tasks are placed than were wanted.",
    ),
    mutant(
        "gangs-on-more-machines",
        SCARCITY,
        "cheap_if_as_few",
        "return cheap if «np.count_nonzero(cheap) <= np.count_nonzero(given)» else given",
        "True",
        "A gang is spread over more machines to save money, and trains slower.",
    ),
    mutant(
        "score-beats-price",
        SCARCITY,
        "dear_last",
        "return score - ranks(room, demand) * «(np.ptp(score) + 1.0)»",
        "0.0",
        "The fuller machine is taken, although others must have it.",
    ),
    mutant(
        "draw-among-all",
        SCARCITY,
        "_cheapest",
        "is_cheap = usable «& (_ranked(price, np.flatnonzero(usable)) == 0)»",
        "",
        "Batch jobs draw machines that others must have.",
    ),
)
