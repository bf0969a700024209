"""Pipelines in a memory store: their stages, what stages cost, and the keys of jobs.

Goal     Do what `pipelines.sql` does, on plain records.
Promise  A stage is queued in the call that ends the last one before it.
Source   docs/decisions/0059-start-deadlines.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from omega.lifecycle.states import FINAL, State
from omega.model.lanes import QueueOrder
from omega.model.pipeline_graph import PipelineGraph, Stage
from omega.model.pipelines import PipelineSpec
from omega.ordering.deadlines import LAST, SourceTokens, stage_key, start_deadlines
from omega.ordering.stage_costs import learnt_picos, stage_costs_ms
from omega.store.memory.job_records import JobRecord
from omega.store.memory.jobs import MemoryJobs, milliseconds
from omega.store.pipelines import PipelineStatus, StageEnd, StageStatus, refuse_too_many

_ENDS: Mapping[State, StageEnd] = {
    State.SUCCEEDED: StageEnd.SUCCEEDED,
    State.FAILED: StageEnd.FAILED,
    State.CANCELLED: StageEnd.CANCELLED,
}


@dataclass(eq=False)
class PipelineRecord:
    """One pipeline."""

    id: int
    spec: PipelineSpec
    graph: PipelineGraph
    submitted_ms: int
    stamp: int
    stages: dict[str, StageStatus]
    """By name, in the order of the spec; `state` and `began` are those of no time."""
    finished_ms: int | None = None

    @property
    def template(self) -> tuple[str, str]:
        """The tenant and the name under which costs are learnt."""
        return self.spec.tenant, self.spec.name

    def may_be_queued(self, stage: StageStatus) -> bool:
        """Return whether a stage is no job yet, and all before it have succeeded."""
        parents = (self.stages[name].end for name in stage.after)
        is_open = stage.job is None and stage.end is None
        return is_open and all(end is StageEnd.SUCCEEDED for end in parents)


@dataclass(eq=False)
class PipelineTable:
    """All pipelines of a store, and what was learnt from them."""

    records: dict[int, PipelineRecord] = field(default_factory=dict)
    picos: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    """By template, what a unit of each stage costs."""
    tokens: dict[tuple[str, str], SourceTokens] = field(default_factory=dict)
    orders: dict[str, QueueOrder] = field(default_factory=dict)
    """The order on which each kind of scheduler agreed last."""
    stages: dict[int, str] = field(default_factory=dict)
    """By job, the name of the stage that it is."""


class MemoryPipelines(MemoryJobs):
    """A job queue with pipelines. `_pipelines` is empty at first."""

    _pipelines: PipelineTable

    def submit_pipelines(self, specs: Sequence[PipelineSpec]) -> list[int]:
        """Add pipelines, all or none, and queue their first stages; return their ids in order."""
        refuse_too_many(specs)
        table, now_ms = self._pipelines, milliseconds(self._clock.now())
        first = len(table.records) + 1
        for number, spec in enumerate(specs, start=first):
            table.records[number] = record = PipelineRecord(
                id=number,
                spec=spec,
                graph=PipelineGraph([Stage(it.name, it.after) for it in spec.stages]),
                submitted_ms=now_ms,
                stamp=self._take_token(spec, now_ms),
                stages={it.name: StageStatus(it.name, it.after, it.units) for it in spec.stages},
            )
            self._queue_stages(record)
        return list(range(first, first + len(specs)))

    def pipeline(self, pipeline: int) -> PipelineStatus | None:
        """Return one pipeline; None if there never was one."""
        record = self._pipelines.records.get(pipeline)
        return None if record is None else self._status_of_pipeline(record)

    def pipelines(self, *, pipelines_max: int = 100) -> list[PipelineStatus]:
        """Return pipelines, newest first."""
        newest = list(reversed(self._pipelines.records.values()))
        return [self._status_of_pipeline(record) for record in newest[:pipelines_max]]

    def stage_picos(self, tenant: str, template: str) -> Mapping[str, int]:
        """Return what a unit of input costs in picoseconds, by the stages that have ended well."""
        return dict(sorted(self._pipelines.picos.get((tenant, template), {}).items()))

    def _end_stages(self, ended: Iterable[tuple[JobRecord, int | None]]) -> None:
        """Go on with the pipelines of jobs that have ended; those without one are passed over.

        With each job goes for how many milliseconds it ran, if that is to be learnt.
        """
        table, touched = self._pipelines, set[int]()
        for job, took_ms in ended:
            if job.pipeline is None or job.state not in FINAL:
                continue
            record, name = table.records[job.pipeline], table.stages[job.id]
            end = _ENDS[job.state]
            record.stages[name] = stage = replace(record.stages[name], end=end)
            touched.add(record.id)
            if end is not StageEnd.SUCCEEDED:
                _skip_below(record, name, f"job {job.id} of an earlier stage: {end.value}")
            elif took_ms is not None:
                known = table.picos.setdefault(record.template, {})
                known[name] = learnt_picos(known.get(name), took_ms, stage.units)
        for number in sorted(touched):
            record = table.records[number]
            self._queue_stages(record)
            if all(stage.end is not None for stage in record.stages.values()):
                record.finished_ms = milliseconds(self._clock.now())

    def _note_order(self, kind: str, order: QueueOrder) -> None:
        """Give the stages of a kind that have not ended the keys of its order, if it is another.

        Those that run may be pending again.
        """
        orders = self._pipelines.orders
        if orders.get(kind) is order:
            return
        orders[kind] = order
        if not order.is_by_key:
            return
        for number in self._pipelines.stages:
            job = self._jobs[number]
            if job.spec.scheduler == kind and job.state not in FINAL:
                job.order_key = self._key(job, order)
        self._queues[kind].sort_anew(self._clock.now())

    def _key(self, job: JobRecord, order: QueueOrder) -> int:
        assert job.pipeline is not None
        record = self._pipelines.records[job.pipeline]
        name = self._pipelines.stages[job.id]
        stage = record.stages[name]
        assert stage.cost_ms is not None
        assert stage.start_ms is not None
        return stage_key(
            order, start_ms=stage.start_ms, cost_ms=stage.cost_ms, stamp_ms=record.stamp
        )

    def _queue_stages(self, record: PipelineRecord) -> None:
        """Make jobs of the stages that may be queued now."""
        ready = [stage for stage in record.stages.values() if record.may_be_queued(stage)]
        if not ready:
            return
        spec, known = record.spec, self._pipelines.picos.get(record.template, {})
        units = {stage.name: stage.units for stage in spec.stages}
        costs = stage_costs_ms(record.graph, units, known, spec.within_ms)
        starts = start_deadlines(record.graph, costs, record.submitted_ms + spec.within_ms)
        jobs = {stage.name: stage.job for stage in spec.stages}
        for stage in ready:
            number, name = len(self._jobs) + 1, stage.name
            record.stages[name] = replace(
                stage, job=number, cost_ms=costs[name], start_ms=starts[name]
            )
            self._pipelines.stages[number] = name
            job = JobRecord.submitted(number, jobs[name], self._clock.now())
            job.pipeline = record.id
            job.order_key = self._key(
                job, self._pipelines.orders.get(job.spec.scheduler, QueueOrder.DEADLINE)
            )
            self._jobs[number] = job
            self._queue(job)

    def _take_token(self, spec: PipelineSpec, now_ms: int) -> int:
        if spec.tokens is None:
            return LAST
        whose, rate = (spec.tenant, spec.name), spec.tokens
        tokens = self._pipelines.tokens.get(
            whose, SourceTokens(rate=rate.rate, interval_ms=rate.interval_ms)
        )
        now = tokens.at_rate(rate.rate, rate.interval_ms, now_ms)
        stamp, taken = now.take(now_ms)
        if stamp != LAST:
            self._pipelines.tokens[whose] = taken
        return stamp

    def _status_of_pipeline(self, record: PipelineRecord) -> PipelineStatus:
        jobs = {name: self._jobs.get(it.job or 0) for name, it in record.stages.items()}
        stages = tuple(
            stage
            if (job := jobs[stage.name]) is None
            else replace(stage, state=job.state, began=job.placed > 0)
            for stage in record.stages.values()
        )
        spec = record.spec
        return PipelineStatus(
            id=record.id,
            name=spec.name,
            tenant=spec.tenant,
            submitted_ms=record.submitted_ms,
            within_ms=spec.within_ms,
            stamp=record.stamp,
            finished_ms=record.finished_ms,
            stages=stages,
        )


def _skip_below(record: PipelineRecord, name: str, cause: str) -> None:
    """Skip the stages that come after one, directly or by way of others, and have not ended."""
    below = {name}
    for stage in record.stages.values():  # in the order of the spec: parents come first
        if below.isdisjoint(stage.after):
            continue
        below.add(stage.name)
        if stage.end is None:
            record.stages[stage.name] = replace(stage, end=StageEnd.SKIPPED, cause=cause)
