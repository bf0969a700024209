"""What a task is told of itself: the environment that its agent sets.

Goal     Let a program know which task it is, without asking the cell.
Promise  Names begin with OMEGA_; jobs cannot set these themselves.
Source   docs/guide/agents.md; Slurm's SLURM_ARRAY_TASK_ID, Nomad's NOMAD_ALLOC_INDEX; the
         initialization of torch.distributed from the environment; Open MPI's hostfile.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from omega.model.jobs import JobSpec
from omega.model.resources import DEVICES, Kind
from omega.nodes.agent.agent_task import AgentTask
from omega.nodes.agent.task_driver import Launch, TaskKey
from omega.task import STEPS_DONE

PORT_FIRST: Final = 20_000
PORTS: Final = 10_000
"""The ports of gangs: below those that Linux gives to outgoing connections, from 32,768."""


def launch_of(task: AgentTask, *, machine: str) -> Launch:
    """Return what a driver needs to start a task; its job is known and it has a program."""
    spec, program = task.spec, task.program
    assert spec is not None
    assert program is not None
    peers = task.addresses or ()
    return Launch(
        key=task.key,
        program=program,
        env={
            "OMEGA_JOB": str(task.key.job),
            "OMEGA_JOB_NAME": spec.name,
            "OMEGA_TASK": str(task.key.task),
            "OMEGA_TASKS": str(spec.tasks),
            "OMEGA_MACHINE": machine,
            "OMEGA_RESTARTS": str(task.restarts_made),
            **_steps_of(task, spec),
            **({"OMEGA_MACHINES": ",".join(peers)} if peers else {}),
        },
        defaults=_meeting_place(task.key, peers) if peers else {},
        peers=peers,
        cpu_milli=int(task.amounts[Kind.CPU_MILLI]),
        memory_mib=int(task.amounts[Kind.MEMORY_MIB]),
        gpus=tuple(task.amounts[DEVICES].nonzero()[0].tolist()),
        restarts=task.starts,
    )


def _steps_of(task: AgentTask, spec: JobSpec) -> Mapping[str, str]:
    if spec.work is None:
        return {}
    return {"OMEGA_STEPS": str(spec.work.steps), STEPS_DONE: str(task.steps_done or 0)}


def _meeting_place(key: TaskKey, peers: Sequence[str]) -> Mapping[str, str]:
    """Return the variables by which torch.distributed finds the other tasks.

    Each task sees its own GPUs alone, so that its local rank is 0.
    """
    return {
        "MASTER_ADDR": peers[0],
        "MASTER_PORT": str(PORT_FIRST + key.job % PORTS),
        "RANK": str(key.task),
        "LOCAL_RANK": "0",
        "WORLD_SIZE": str(len(peers)),
    }
