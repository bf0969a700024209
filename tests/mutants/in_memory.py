"""Faults in the store that lives in memory: what it does besides judging."""

from tests.mutants.mutant import Part

EVICTORS = "omega/model/evictors.py"
STORE = "omega/store/memory/store.py"
AGENTS = "omega/store/memory/agents.py"
QUEUE = "omega/store/memory/jobs.py"
MACHINES = "omega/store/memory/machines.py"
FORCE = "omega/store/memory/forced_eviction.py"
PREEMPTION = "omega/store/memory/preemption.py"
TESTS = (
    "tests/contract/test_memory_store.py",
    "tests/unit/store",
    "tests/property/test_memory_store.py",
)
mutant = Part("memory", TESTS)
MUTANTS = (
    mutant(
        "id-not-checked",
        STORE,
        "commit",
        "recorded = self._judged.get(transaction.id)\nif «recorded is not None»:",
        "recorded is not None and not transaction",
        "Who had no answer and asks again is told that its own tasks were another's.",
    ),
    mutant(
        "end-of-another-allocation",
        AGENTS,
        "end_tasks",
        "if self._slot(number, index, began) is not None:",
        "if self._slot(number, index) is not None:",
        "A node that comes late ends what was placed anew since.",
    ),
    mutant(
        "end-leaves-the-revision",
        MACHINES,
        "free",
        "at = distinct(machine) - 1\nself.revision[at] += 1",
        "at = distinct(machine) - 1",
        "Views throw away the row that tells of freed room.",
    ),
    mutant(
        "end-raises-the-sequence",
        MACHINES,
        "free",
        "«at = distinct(machine) - 1»\nself.revision[at] += 1\nself.changed",
        "at = distinct(machine) - 1\nself.sequence[at] += 1",
        "Every completion makes somebody's claim stale.",
        borrows=(MACHINES, "self.sequence[at] += 1\nself.revision[at] += 1"),
    ),
    mutant(
        "grant-missed-by-deltas",
        MACHINES,
        "write",
        "self.revision[at] = rows.revision\nself.changed(at, number)",
        "self.revision[at] = rows.revision",
        "Views that live on deltas never learn of others' grants.",
    ),
    mutant(
        "state-missed-by-deltas",
        MACHINES,
        "_claimable_changed",
        "self.sequence[at] += 1\nself.revision[at] += 1\nself.changed(at, number)",
        "self.sequence[at] += 1\n        self.revision[at] += 1",
        "Schedulers go on claiming on a machine that is down.",
    ),
    mutant(
        "mark-too-late",
        STORE,
        "changes_since",
        "return self._machines.changes_since(mark, self._transactions, parts)",
        "return self._machines.changes_since(mark, self._transactions + 1, parts)",
        "The next transaction is missing from the next delta.",
    ),
    mutant(
        "expired-lease-kept",
        QUEUE,
        "rescue",
        "if job.lease_ends_s <= now_s)",
        "if job.lease_ends_s < 0)",
        "The jobs of a dead scheduler wait for ever.",
    ),
    mutant(
        "token-not-compared",
        QUEUE,
        "_holds",
        "number in self._leased and self._leased[number].token == token",
        "number in self._leased",
        "Who has lost a job parks it under the hands of who has it.",
    ),
    mutant(
        "evicted-job-not-queued",
        FORCE,
        "_unplace",
        "if ran:",
        "if not ran:",
        "An evicted job is never planned again.",
    ),
    mutant(
        "resize-sells-what-is-in-use",
        MACHINES,
        "resize",
        "self.capacity[at] = «capacity»\nexcess = self.excess(machine)",
        "np.maximum(capacity, self.used[at])",
        "A machine that shrinks takes claims above its new limit, and never gets there.",
        borrows=(MACHINES, "np.subtract.at(self.used, machine - 1, amounts)"),
    ),
    mutant(
        "notice-ends-the-highest-first",
        FORCE,
        "_in_excess",
        '-rows["started_ms"], precedence))',
        '-rows["started_ms"], -precedence))',
        "A shrinking machine ends what matters most.",
    ),
    mutant(
        "cut-gang-whose-others-stay",
        FORCE,
        "_force_end",
        "if job.placed - len(tasks) < job.spec.minimum:",
        "if job.placed < len(tasks):",
        "What is left of a gang holds its machines and does nothing.",
    ),
    mutant(
        "draining-machine-loses-its-tasks",
        FORCE,
        "lose_tasks",
        "np.isin(self._machines.state[named], DEAD)",
        "np.isin(self._machines.state[named], (1, *DEAD))",
        "A drain ends what it was to let finish.",
    ),
    mutant(
        "gone-machine-comes-back",
        MACHINES,
        "set_state",
        "& (self.state[at] != MachineState.GONE)]",
        "]",
        "A machine that has left takes claims again.",
    ),
    mutant(
        "gap-ignored",
        PREEMPTION,
        "_yields_to",
        "job.spec.yields_to(self._precedence_gap)",
        "job.spec.yields_to(1)",
        "The owner sets a gap, and jobs evict others that are nearly as urgent.",
    ),
    mutant(
        "change-of-gap-unnoticed",
        PREEMPTION,
        "set_precedence_gap",
        "self._machines.generation += 1",
        "pass",
        "The owner lowers the gap, and nobody is woken.",
    ),
    mutant(
        "own-by-any-lease",
        PREEMPTION,
        "_own",
        "job.id in held and job.spec.scheduler == scheduler",
        "job.id in held",
        "Whoever leases a job evicts it for a job of another scheduler, however urgent it is.",
    ),
    mutant(
        "not-preemptible-evicted",
        "omega/model/jobs.py",
        "yields_to",
        "self.precedence + precedence_gap if self.preemptible else NEVER_YIELDS",
        "self.precedence + precedence_gap",
        "A job that must not be interrupted is interrupted.",
    ),
    mutant(
        "evictor-not-told",
        STORE,
        "_apply",
        "self._jobs[job].evicted_by = evictor",
        "self._jobs[job].evicted_by = None",
        "Nobody can say for which job another was evicted.",
    ),
    mutant(
        "moves-told-as-evictions",
        EVICTORS,
        "evictors",
        "if evictor != job:",
        "if evictor:",
        "A job that was moved seems to have been evicted by itself.",
    ),
)
