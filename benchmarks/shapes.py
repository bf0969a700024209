"""What is submitted end to end: jobs by size, shapes that others have published, and their figures.

Figures of others are what they told of their machines and their way of counting; ours stand beside
them to show the order of magnitude.
"""

from dataclasses import dataclass, replace
from typing import Final

from omega.model.jobs import Constraint, JobSpec, Operator, TaskGroup
from omega.workload.demo_cell import PLATFORMS

KIND: Final = "batch"
"""Of the schedulers, and so of the jobs."""
TASKS_A_MACHINE: Final = 100
"""Tasks that a drain leaves on a machine on average: the smallest machine takes 160."""
JOBS_A_SECOND: Final = 2_000
TASKS_A_SECOND: Final = 20_000
"""How much work is taken for a second of it: more than most machines do, so that a queue lasts."""
JOBS_MIN: Final = 4
"""So few that even a toy cell has room for them."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What somebody else has published."""

    system: str
    tasks_per_s: str
    conditions: str
    source: str

    def __str__(self) -> str:
        return f"{self.system}: {self.tasks_per_s}/s; {self.conditions} ({self.source})"


NOMAD: Final = Figure(
    system="Nomad",
    tasks_per_s="3,750",
    conditions="1,000 jobs of 1,000 tasks on 5,000 hosts, 5 servers",
    source="HashiCorp, C1M challenge, 2016",
)
KUBERNETES: Final = Figure(
    system="kube-scheduler",
    tasks_per_s="810",
    conditions="50,000 pods on 5,000 nodes: the floor that its CI holds it to",
    source="Kubernetes, scheduler_perf, SchedulingBasic",
)
GODEL: Final = Figure(
    system="Gödel",
    tasks_per_s="1,000 to 5,000",
    conditions="its open benchmark on 30,000 simulated nodes; at most in production",
    source="Xiang et al., SoCC 2023, and the benchmark of its repository",
)
FIGURES: Final = (NOMAD, KUBERNETES, GODEL)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Equal jobs for the demonstration's machines, of tasks so small that all have room."""

    machines: int
    tasks: int
    """Of each job."""
    name: str = ""
    """Of a published one."""
    jobs: int | None = None
    """How many, where that is part of the shape; else as many as the time allows."""
    gang: bool = False
    """All tasks of a job or none."""
    constrained: bool = False
    """Two of three platforms may take a task."""
    figure: Figure | None = None

    def spec(self) -> JobSpec:
        """Return one of the jobs; they are all alike, and run until they are cancelled."""
        platform = Constraint("platform", Operator.IN, PLATFORMS[:2])
        group = TaskGroup(
            tasks=self.tasks,
            cpu_milli=100,
            memory_mib=64,
            constraints=(platform,) if self.constrained else (),
        )
        minimum = self.tasks if self.gang else 0
        return JobSpec(name="benchmark", scheduler=KIND, groups=(group,), minimum=minimum)

    def jobs_for(self, seconds: float) -> int:
        """Return how many jobs to drain in about so many seconds, on a machine that is fast."""
        if self.jobs is not None:
            return self.jobs
        affordable = seconds * min(JOBS_A_SECOND, TASKS_A_SECOND / self.tasks)
        that_fit = self.machines * TASKS_A_MACHINE // self.tasks
        return max(JOBS_MIN, min(that_fit, int(affordable)))

    def divided_by(self, divisor: int) -> "Shape":
        """Return the same in small."""
        if divisor == 1:
            return self
        machines, tasks = max(1, self.machines // divisor), max(1, self.tasks // divisor)
        jobs = None if self.jobs is None else max(1, self.jobs // divisor)
        return replace(self, machines=machines, tasks=tasks, jobs=jobs)

    def __str__(self) -> str:
        counted = "" if self.jobs is None else f"{self.jobs:,} x "
        return (
            f"{counted}{self.tasks:,}"
            f"{', gangs' if self.gang else ''}{', constrained' if self.constrained else ''}"
        )


PUBLISHED: Final = {
    shape.name: shape
    for shape in (
        Shape(name="c1m", machines=5_000, jobs=1_000, tasks=1_000, constrained=True, figure=NOMAD),
        Shape(name="pods", machines=5_000, jobs=50_000, tasks=1, figure=KUBERNETES),
        Shape(name="gangs", machines=5_000, jobs=10, tasks=5_000, gang=True),
    )
}
"""Shapes that others measure themselves by. Of gangs nobody has published a figure."""
