"""What a task is told of itself: the environment that its agent sets.

Goal     Let a program know which task it is, without asking the cell.
Promise  Names begin with OMEGA_; jobs cannot set these themselves.
Source   docs/guide/agents.md; Slurm's SLURM_ARRAY_TASK_ID, Nomad's NOMAD_ALLOC_INDEX.
"""

from omega.model.resources import DEVICES, Kind
from omega.nodes.agent.agent_task import AgentTask
from omega.nodes.agent.task_driver import Launch


def launch_of(task: AgentTask, *, machine: str) -> Launch:
    """Return what a driver needs to start a task; its job is known and it has a program."""
    spec, program = task.spec, task.program
    assert spec is not None
    assert program is not None
    return Launch(
        key=task.key,
        program=program,
        env={
            "OMEGA_JOB": str(task.key.job),
            "OMEGA_JOB_NAME": spec.name,
            "OMEGA_TASK": str(task.key.task),
            "OMEGA_TASKS": str(spec.tasks),
            "OMEGA_MACHINE": machine,
            "OMEGA_RESTARTS": str(len(task.restarts)),
        },
        cpu_milli=int(task.amounts[Kind.CPU_MILLI]),
        memory_mib=int(task.amounts[Kind.MEMORY_MIB]),
        gpus=tuple(task.amounts[DEVICES].nonzero()[0].tolist()),
        restarts=len(task.restarts),
    )
