"""Faults in agents, their leases, and how jobs fail."""

from tests.mutants.in_memory import mutant as memory_mutant
from tests.mutants.mutant import Mutant

AGENT = "omega/nodes/agent/agent.py"
TASK = "omega/nodes/agent/agent_task.py"
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
        "room-of-the-dying-given-away",
        TASK,
        "holds_room",
        "return self.runs or (self.phase is Phase.WAITING and bool(self.restarts))",
        "return self.phase is Phase.WAITING and bool(self.restarts)",
        "Two tasks have one GPU while the first of them is given its time to stop.",
    ),
    of_agents(
        "record-after-the-start",
        AGENT,
        "_start",
        "if «self._records.write(task)»:\n    driver.start(started)",
        "started",
        "An agent that is killed at a start counts the timeout and the restarts anew.",
    ),
    of_agents(
        "restarts-never-forgotten",
        TASK,
        "_may_restart",
        "return sum(at > since_s for at in self.restarts) < program.restart.attempts",
        "return sum(at == at for at in self.restarts) < program.restart.attempts",
        "A service that fails once a month is not started again after some months.",
    ),
    of_agents(
        "reboot-is-a-failure",
        TASK,
        "ended",
        "if seen.cause is ExitCause.LOST or self.reason is StopReason.FENCED:",
        "if self.reason is StopReason.FENCED:",
        "A machine's restart fails the jobs that ran there.",
    ),
    of_agents(
        "fencing-is-a-failure",
        TASK,
        "ended",
        "if seen.cause is ExitCause.LOST or self.reason is StopReason.FENCED:",
        "if seen.cause is ExitCause.LOST:",
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
        "renewed = replace(lease, asked_s=asked_s)",
        "renewed = replace(lease, asked_s=asked_s + 1.0)",
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
        "if deadline_s is not None:\n    lease.asked_s = deadline_s - KILL_AT * length_s",
        "pass",
        "To replace an agent stops its tasks.",
    ),
    of_agents(
        "exits-without-outputs",
        AGENT,
        "_report",
        "[*(task for task in self._tasks.values() if task.runs), *ended]",
        "[task for task in self._tasks.values() if task.runs]",
        "The last lines of a program never arrive.",
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
