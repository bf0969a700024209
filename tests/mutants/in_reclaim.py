"""Faults in evictions that bring a tenant up to its share."""

from tests.mutants.mutant import Mutant, Part

RULE = "omega/ordering/reclaim.py"
RECLAIMING = "omega/framework/reclaiming.py"
FAIR_QUEUE = "omega/framework/fair_queue.py"
LANES = "omega/store/postgres/functions/lanes.sql"
MEMORY = "omega/store/memory/lanes.py"
OF_RULE = ("tests/property/test_reclaim.py",)
OF_PROCESSES = ("tests/unit/framework/test_reclaiming.py",)
OF_POSTGRES = ("tests/contract/test_postgres_store.py",)
OF_MEMORY = ("tests/contract/test_memory_store.py",)
OF_ATTACKS = ("tests/attack/test_lanes.py",)
mutant = Part("reclaim")
MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "whoever-does-not-yield-goes",
        RULE,
        "_Victims.__init__",
        "yields = «(occupants.yields_to <= job.spec.precedence) &» (occupants.about != job.id)",
        "",
        "A job plans to evict tasks of equal precedence, and its commits are refused.",
        OF_RULE,
    ),
    mutant(
        "a-gang-counts-as-one-task",
        RULE,
        "_lost",
        "amounts[its].max(axis=0) * «int(occupants.running[number])»",
        "1",
        "A tenant whose gangs are evicted is left with less than the one that has their room.",
        OF_RULE,
    ),
    mutant(
        "shares-as-they-are-now",
        RULE,
        "_Victims.may_go",
        "dominant_shares(used «+ demand», whole)",
        "",
        "A job gets more than its tenant's share, and another tenant less.",
        OF_RULE,
    ),
    mutant(
        "one-task-more-makes-no-difference",
        RULE,
        "is_below",
        "shares.used[[node]] «+ least»",
        "",
        "Tenants of equal shares read who runs where again and again, for nothing.",
        OF_RULE,
    ),
    mutant(
        "a-gang-in-part",
        RULE,
        "reclaimable",
        "if tasks < max(1, «job.lacking»):",
        "1",
        "Room is looked for for a part of a gang, whose claims are refused.",
        OF_RULE,
    ),
    mutant(
        "at-once",
        RECLAIMING,
        "Reclaiming.may",
        "if «job.age_ms < self._after_ms or» not self._is_below(job):",
        "",
        "Tasks are evicted for jobs for which room would have come free a moment later.",
        OF_PROCESSES,
    ),
    mutant(
        "two-processes-at-once",
        RECLAIMING,
        "Reclaiming._leased",
        "self._until_s = asked_s + LEASE_MS / 1_000\n        return «granted»",
        "True",
        "Two replicas each take as much for a tenant as one should.",
        OF_PROCESSES,
    ),
    mutant(
        "use-from-before-the-lease",
        RECLAIMING,
        "Reclaiming.may",
        "if self._summed_s «< self._since_s»:",
        "< -1",
        "Two replicas one after the other take as much for a tenant as one should.",
        OF_PROCESSES,
    ),
    mutant(
        "the-lease-runs-out",
        RECLAIMING,
        "Reclaiming._leased",
        "self._until_s - asked_s >= LEASE_MS / «2_000»",
        "2_000_000",
        "A process evicts under a lease that is about to be another's.",
        OF_PROCESSES,
    ),
    mutant(
        "jobs-that-wait-count",
        FAIR_QUEUE,
        "FairQueue.shares",
        "claimed = [«replace(it, demand=it.claimed)» for it in charges if it.claimed is not None]",
        "it",
        "A tenant is taken to have what its leased jobs ask for, and loses that much more.",
        OF_PROCESSES,
    ),
    mutant(
        "what-was-evicted-counts",
        FAIR_QUEUE,
        "FairQueue.note_evicted",
        "_Charge(self._clock.now(), tenant, «-» demand)",
        "",
        "A process evicts twice for one difference of shares.",
        OF_PROCESSES,
    ),
    mutant(
        "what-was-evicted-is-never-forgotten",
        FAIR_QUEUE,
        "FairQueue._drop_charges",
        "[it for it in self._evicted if «it.at_s >= summed_s»]",
        "True",
        "A tenant that lost tasks once is taken to use less than it does.",
        OF_PROCESSES,
    ),
    mutant(
        "anybody-has-the-lease",
        LANES,
        "lease_reclaim",
        "l.expires_at <= clock_timestamp() OR «(l.holder = _holder AND l.login = session_user)»",
        "true",
        "Two replicas each take as much for a tenant as one should.",
        OF_POSTGRES,
    ),
    mutant(
        "a-lease-of-another-login",
        LANES,
        "lease_reclaim",
        "(l.holder = _holder «AND l.login = session_user»)",
        "",
        "A login that has seen a holder's number has its lease.",
        OF_ATTACKS,
    ),
    mutant(
        "a-lease-for-a-day",
        LANES,
        "lease_reclaim",
        "lasts := «least(lease_length(_lease_ms), lease_length(${reclaim_ms_max}))»; IF _holder",
        "lease_length(_lease_ms)",
        "A login keeps all others from reclaiming for a day by one call.",
        OF_ATTACKS,
    ),
    mutant(
        "a-lease-in-memory-is-anybodys",
        MEMORY,
        "MemoryLanes.lease_reclaim",
        "if held_by != holder and «ends_s > now_s»:",
        "False",
        "In a simulation two replicas reclaim at once.",
        OF_MEMORY,
    ),
)
