"""Faults in agents, their leases, and how jobs fail."""

from tests.mutants.in_memory import mutant as memory_mutant
from tests.mutants.mutant import Mutant

AGENT = "omega/nodes/agent/agent.py"
TASK = "omega/nodes/agent/agent_task.py"
BACKGROUND = "omega/nodes/agent/background_driver.py"
CHECKS = "omega/nodes/agent/checks.py"
LAUNCH = "omega/nodes/agent/launch.py"
STEPS = "omega/nodes/agent/step_reporter.py"
PLACEMENTS = "omega/nodes/agent/placements.py"
RECORDS = "omega/nodes/agent/records.py"
EXITS = "omega/nodes/agent/exit_reporter.py"
LEASE = "omega/nodes/agent/machine_lease.py"
MEMORY = "omega/store/memory/agents.py"


def of_agents(name: str, file: str, function: str, before: str, after: str, why: str) -> Mutant:
    """Return a mutant of agents."""
    return Mutant(
        name=f"agents.{name}",
        file=file,
        function=function,
        before=before,
        after=after,
        why=why,
        tests=("tests/unit/nodes/agent",),
    )


MUTANTS: tuple[Mutant, ...] = (
    of_agents(
        "gangs-end-unseen",
        PLACEMENTS,
        "reported",
        "if «not any(ends_others)»:",
        "True",
        "The tasks that end with their gang run on until something else changes on the machine.",
    ),
    of_agents(
        "counts-reports-of-nothing",
        EXITS,
        "_send",
        'if «(yield from called("exits", to_record(exits)))»:',
        '(yield from called("exits", to_record(exits))) is not None',
        "The next change on the machine is taken for the agent's own report, and not seen.",
    ),
    of_agents(
        "restarts-unknown-to-the-next-agent",
        RECORDS,
        "_read",
        'restart=«_restart_of_json(said["restart"]) if "restart" in said else» Restart()',
        "",
        "The job of a program that fails while its agent is replaced fails: nobody restarts it.",
    ),
    of_agents(
        "ends-without-record-forgotten",
        AGENT,
        "_end_unrecorded",
        "if «not self._placements.are_known»:",
        "False",
        "A program that has ended runs again if the record of its task was lost.",
    ),
    of_agents(
        "asks-an-absent-store-at-each-restart",
        AGENT,
        "step",
        "if (reported or started) «and self._failures == 0»:",
        "",
        "An agent whose programs fail at once waits for a database that is away, again and again.",
    ),
    of_agents(
        "starts-outlast-the-lease",
        AGENT,
        "_start_waiting",
        "is_late = «self._must_renew()» and (started > 0 or not self._is_lease_fresh())",
        "False",
        "An agent that starts many programs loses its lease by that, and with it all of them.",
    ),
    of_agents(
        "waits-for-the-engine",
        BACKGROUND,
        "forget",
        "self._removals.append(_Request(key, lambda: self._forget(key)))",
        "self._forget(key)",
        "An agent that removes a container waits for an engine with much to do, and is fenced.",
    ),
    of_agents(
        "ends-unseen-while-killing",
        BACKGROUND,
        "_next",
        "if self._starts_and_signals and «late_s < LATE_LOOK_S»:",
        "True",
        "Many containers that are killed are killed again for ever: nobody sees that they ended.",
    ),
    of_agents(
        "ends-of-containers-without-outputs",
        BACKGROUND,
        "_look",
        "if «end is not None and key not in known»:\n    self._read_outputs(key)",
        "end is not None and False",
        "The last lines of a container never arrive.",
    ),
    of_agents(
        "room-of-the-dying-given-away",
        TASK,
        "holds_room",
        "return self.runs or (self.phase is Phase.WAITING and self.restarts_made > 0)",
        "return self.phase is Phase.WAITING and self.restarts_made > 0",
        "Two tasks have one GPU while the first of them is given its time to stop.",
    ),
    of_agents(
        "record-after-the-start",
        AGENT,
        "_start",
        "if «self._records.write(task)»:\n    driver.start(launch)",
        "launch",
        "An agent that is killed at a start counts the timeout and the restarts anew.",
    ),
    of_agents(
        "restarts-never-forgotten",
        TASK,
        "_drop_old_restarts",
        "lately = [at for at in self.restarts if at > since_s]",
        "lately = [at for at in self.restarts if at == at]",
        "A service that fails once a month is not started again after some months.",
    ),
    of_agents(
        "reboot-is-a-failure",
        TASK,
        "ended",
        "if is_lost or self.reason is StopReason.FENCED:",
        "if self.reason is StopReason.FENCED:",
        "A machine's restart fails the jobs that ran there.",
    ),
    of_agents(
        "fencing-is-a-failure",
        TASK,
        "ended",
        "if is_lost or self.reason is StopReason.FENCED:",
        "if is_lost:",
        "Tasks fail because the database was away.",
    ),
    of_agents(
        "grace-beyond-the-lease",
        TASK,
        "fence",
        "self.kill_due_s = min(self.kill_due_s, kill_due_s)",
        "self.kill_due_s = max(self.kill_due_s, kill_due_s)",
        "A task that is being stopped runs on after its place was given away.",
    ),
    of_agents(
        "lease-not-looked-at-before-renewal",
        AGENT,
        "step",
        "heard = False\n«self._fence()»\ntry:",
        "pass",
        "What the watchdog killed counts as a failure of the program.",
    ),
    of_agents(
        "started-without-the-lease",
        AGENT,
        "_start_waiting",
        "if «self._is_ending or not self._is_current»:\n    return False",
        "self._is_ending",
        "A task that was placed elsewhere is started here, too.",
    ),
    of_agents(
        "lease-counted-from-the-answer",
        AGENT,
        "_renew",
        "kill_due_s = replace(lease, asked_s=asked_s).kill_due_s",
        "kill_due_s = replace(lease, asked_s=asked_s + 1.0).kill_due_s",
        "The agent holds its machine for longer than the cell knows.",
    ),
    of_agents(
        "deadline-is-the-end",
        LEASE,
        "kill_due_s",
        "return self.asked_s + KILL_AT * self.length_s",
        "return self.asked_s + self.length_s",
        "Tasks are killed when others may already run them.",
    ),
    of_agents(
        "next-agent-fences-at-once",
        LEASE,
        "taken_up",
        "asked_s=now_s - RENEW_AT * length_s)\n"
        "return cls(holder, length_s, asked_s=deadline_s - «KILL_AT * length_s»)",
        "length_s",
        "To replace an agent stops its tasks.",
    ),
    of_agents(
        "agent-with-a-first-lease-fences-at-once",
        LEASE,
        "taken_up",
        "if deadline_s is None:\n"
        "    return cls(holder, length_s, asked_s=now_s - «RENEW_AT * length_s»)",
        "length_s",
        "An agent that is started with a lease kills what ran without one.",
    ),
    of_agents(
        "locked-job-tried-with-others",
        EXITS,
        "report",
        "if task.key.job not in self._apart",
        "",
        "A locked job holds up the exits of all others on its machine.",
    ),
    of_agents(
        "locked-jobs-waited-for-in-turn",
        EXITS,
        "_send_apart",
        "if self._clock.now() > «began_s + STEP_S_MAX»",
        "began_s + 3 * STEP_S_MAX",
        "An agent that waits for many locks loses the lease on its machine.",
    ),
    of_agents(
        "exits-without-outputs",
        AGENT,
        "_report",
        "self._outputs.report(«there», self._drivers, at_once=bool(ended))\n"
        "told = [*(task for task in there if task.runs), *ended]",
        "[task for task in there if task.runs]",
        "The last lines of a program never arrive.",
    ),
    of_agents(
        "next-copy-beside-the-first",
        AGENT,
        "_start_waiting",
        "running = {task.key.of_job for task in tasks if task.runs}",
        "running = set()",
        "A task that is evicted and placed here again runs twice during the first copy's grace.",
    ),
    of_agents(
        "hung-checks-without-end",
        CHECKS,
        "step",
        "elif it.under_way is None and it.due_s <= now_s and «len(self._threads) < AT_ONCE_MAX»:",
        "True",
        "Each check that hangs costs a thread for good.",
    ),
    of_agents(
        "check-of-another-start",
        CHECKS,
        "step",
        "if it is None or it.started_s != task.started_s:",
        "if it is None:",
        "A program that has just been restarted is stopped for what the one before failed.",
    ),
    of_agents(
        "failures-never-forgiven",
        CHECKS,
        "_finish",
        "it.failed = 0 if why is None else it.failed + 1",
        "it.failed = it.failed + (why is not None)",
        "A service that misses three checks in a year is restarted.",
    ),
    of_agents(
        "late-check-waited-for",
        CHECKS,
        "_finish",
        "elif now_s >= it.late_s:",
        "elif False:",
        "A server that accepts connections and never answers counts as healthy.",
    ),
    of_agents(
        "started-before-peers-are-known",
        TASK,
        "is_described",
        "knows_peers = «self.addresses is not None or not self.spec.needs_all_tasks»",
        "True",
        "A task of a gang starts without the addresses of the others.",
    ),
    of_agents(
        "last-task-is-the-master",
        LAUNCH,
        "_meeting_place",
        '"MASTER_ADDR": «peers[0]»,',
        "peers[-1]",
        "The tasks of a gang on several machines never meet.",
    ),
    of_agents(
        "every-task-speaks-for-its-job",
        STEPS,
        "_progress",
        "if task.spec is None or task.spec.work is None or «task.key.task != REPORTER»:",
        "False",
        "The tasks of a gang overwrite each other's steps.",
    ),
    of_agents(
        "asks-rarely-after-an-end",
        AGENT,
        "step",
        "self._clock.now()\n«self._poll_pause_s = POLL_PAUSE_S_MIN»",
        "pass",
        "Between two short tasks a machine is idle for a poll interval.",
    ),
    of_agents(
        "ends-are-not-heard",
        "omega/nodes/agent/child_wait.py",
        "__enter__",
        "self._handler = signal.signal(signal.SIGCHLD, «lambda _number, _frame: None»)",
        "0",
        "The end of a program is noticed up to a tenth of a second late.",
    ),
    of_agents(
        "killed-during-a-renewal",
        AGENT,
        "_renew",
        "if «self._clock.now() >= lease.kill_due_s»:",
        "False",
        "A task that the watchdog has killed fails for good, though its machine was only slow.",
    ),
    of_agents(
        "last-steps-not-reported",
        AGENT,
        "_report",
        "yield from self._steps.report(told, at_once=bool(ended))",
        "yield from self._steps.report(told, at_once=False)",
        "A training that ends loses the steps since the last report.",
    ),
    memory_mutant(
        "exit-of-another-start",
        MEMORY,
        "report_exits",
        "if self._slot(it.job, it.task, it.started_ms) is not None:",
        "if self._slot(it.job, it.task) is not None:",
        "A late report ends a task that was placed anew.",
    ),
)
