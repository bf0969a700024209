"""Faults in the order of the whole queue: lanes, shares, tenants, and how replicas agree."""

from tests.mutants.mutant import Mutant, Part

LANES = "omega/store/postgres/functions/lanes.sql"
QUEUE = "omega/store/postgres/functions/queue.sql"
SPECS = "omega/store/postgres/functions/specs.sql"
FAIR = "omega/ordering/fair.py"
FAIR_QUEUE = "omega/framework/fair_queue.py"
PASSED_OVER = "omega/framework/passed_over.py"
PENDING = "omega/store/memory/pending_queue.py"
MEMORY = "omega/store/memory/lanes.py"
REPORT = "omega/reports/fairness.py"
OF_POSTGRES = ("tests/contract/test_postgres_store.py",)
OF_MEMORY = ("tests/contract/test_memory_store.py", "tests/unit/store/memory")
OF_ORDER = ("tests/unit/ordering", "tests/property/test_fair_order.py")
OF_PASSED_OVER = ("tests/unit/framework/test_passed_over.py",)
OF_QUEUES = ("tests/simulation/test_fair_queue.py",)
mutant = Part("ordering")
MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "lane-of-delayed-jobs",
        LANES,
        "read_lanes",
        "AND j.constraint_class = f.constraint_class «AND j.not_before <= clock_timestamp()»",
        "",
        "A job that may not be leased yet is taken for the next of its lane.",
        OF_POSTGRES,
    ),
    mutant(
        "lane-by-age-alone",
        LANES,
        "lanes_of",
        "AND (j.tenant, j.constraint_class) > (l.tenant, l.constraint_class)"
        " ORDER BY j.tenant, j.constraint_class, «j.precedence DESC,» j.id LIMIT 1) AS n",
        "",
        "The head of a lane is not the job that a lease takes first.",
        OF_POSTGRES,
    ),
    mutant(
        "demand-of-tasks-with-places",
        LANES,
        "read_lanes",
        "div(d.amount::numeric * «(h.tasks - h.placed)», h.tasks)",
        "h.tasks",
        "A job of which most tasks run counts as if none did.",
        OF_POSTGRES,
    ),
    mutant(
        "use-is-never-summed-again",
        LANES,
        "read_tenant_use",
        "IF age IS NULL OR age < 0 «OR age >= age_max» THEN",
        "",
        "A tenant whose tasks have ended stays behind all others.",
        OF_POSTGRES,
    ),
    mutant(
        "two-orders-of-a-kind",
        LANES,
        "agree_on_order",
        "WHERE o.scheduler = _scheduler «AND o.name <> _name»",
        "AND false",
        "Replicas with different orders undo each other's.",
        OF_POSTGRES,
    ),
    mutant(
        "agreement-is-shortened",
        LANES,
        "agree_on_order",
        "expires_at = «greatest(o.expires_at, excluded.expires_at)»;",
        "excluded.expires_at",
        "A replica with a short lease opens the kind to another order.",
        OF_POSTGRES,
    ),
    mutant(
        "parent-is-removed",
        LANES,
        "remove_tenant",
        "IF «EXISTS (SELECT FROM tenant WHERE parent = _name)» THEN",
        "false",
        "Tenants are left below one that is not there, and no scheduler can read them.",
        OF_POSTGRES,
    ),
    mutant(
        "lanes-lease-what-is-leased",
        QUEUE,
        "lock_in_lanes",
        "AND not_before <= clock_timestamp() ORDER BY precedence DESC, id LIMIT at_most(w.count)"
        " «FOR NO KEY UPDATE SKIP LOCKED»",
        "",
        "Two schedulers plan one job, and one of them in vain.",
        ("tests/attack/test_lanes.py",),
    ),
    mutant(
        "one-lane-has-all-parked-jobs",
        QUEUE,
        "parked_in_lanes",
        "LIMIT «greatest(1, _jobs_max / l.lanes)»",
        "_jobs_max",
        "Parked jobs of one tenant hide those of all others.",
        OF_POSTGRES,
    ),
    mutant(
        "classes-by-order-of-constraints",
        SPECS,
        "constraint_class",
        'string_agg(d.text, chr(10) || chr(10) «ORDER BY d.text COLLATE "C"»)',
        "ORDER BY d.text DESC",
        "The stores disagree about which jobs are alike.",
        ("tests/postgres/test_tenants.py",),
    ),
    mutant(
        "weights-do-not-count",
        FAIR,
        "fair_order",
        "_or_infinite(capacity) * «nodes.weight»[:, np.newaxis]",
        "(0 * nodes.weight + 1)",
        "A tenant of weight 2 gets as much as one of weight 1.",
        (*OF_ORDER, *OF_QUEUES),
    ),
    mutant(
        "equal-jobs-are-tried-on-a-full-cell",
        PASSED_OVER,
        "PassedOver.jobs_max",
        "return wanted «if is_smaller else 0»",
        "",
        "Every job of a long queue is tried on a full cell.",
        OF_PASSED_OVER,
    ),
    mutant(
        "small-job-waits-for-a-large-one",
        PASSED_OVER,
        "PassedOver.jobs_max",
        "bool((task >= of_task).all() «and (whole >= at_least).all()»)",
        "",
        "A single task waits for room that a gang before it needs.",
        OF_PASSED_OVER,
    ),
    mutant(
        "passed-over-for-good",
        PASSED_OVER,
        "PassedOver.jobs_max",
        "if «viewed_s >= known.until_s»:",
        "False",
        "Where nothing ends, a tenant that found no room once is never tried again.",
        (*OF_PASSED_OVER, *OF_QUEUES),
    ),
    mutant(
        "gain-of-room-is-missed",
        FAIR_QUEUE,
        "FairQueue._read",
        "or «_gained(before, room)»:",
        "False",
        "Room that comes free goes to whoever has found none least often.",
        OF_QUEUES,
    ),
    mutant(
        "leases-are-not-charged",
        FAIR_QUEUE,
        "FairQueue._used",
        "«use[at] += charge.demand»",
        "pass",
        "One tenant gets all that is leased between two reads.",
        OF_QUEUES,
    ),
    mutant(
        "lanes-of-a-kind-are-taken-by-lane",
        PENDING,
        "PendingQueue.take",
        "heads = [ «(*_key(job), queue)»",
        "(0, _key(job)[1], queue)",
        "In a simulation precedence counts for nothing between tenants.",
        OF_MEMORY,
    ),
    mutant(
        "use-of-ended-tasks-in-memory",
        MEMORY,
        "MemoryLanes.tenant_use",
        "not 0 <= now_s - self._use[0] «< age_ms_max / 1_000»",
        "",
        "In a simulation a sum of use is kept for good.",
        OF_MEMORY,
    ),
    mutant(
        "nobody-is-above",
        REPORT,
        "_state_of",
        "if «gap > CLOSE»:",
        "False",
        "A tenant with twice its share is said to have what is fair.",
        ("tests/postgres/test_tenants.py",),
    ),
)
