"""What is to be otherwise in `omega what-if`: its options, and the scenarios that they stand for.

Goal     Describe a change of a cell in one value, declared once, spelled as in `omega sim run`.
Promise  What is not named stays as it was. A change that cannot be simulated is BadInput, or
         UnknownScheduler, before anything is simulated.
Source   docs/decisions/0055-snapshots-and-what-if.md; omega.sim.what_if.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Final

import typer

from omega.cli.options import (
    DECISION_S_MAX,
    Gap,
    PartsOf,
    Speedup,
    SyncBy,
    read_replica_sets,
    refuse_undivided_parts,
    refuse_uneven_parts,
)
from omega.cli.sim.plan import GAP_S, MACHINES_MAX, as_json
from omega.cli.snapshot.variants import Variant
from omega.errors import BadInput
from omega.framework.scheduler import DecisionTime
from omega.model.claims import ConflictRule
from omega.model.jobs import PRECEDENCE_GAP_MAX
from omega.sim.commit_unit import CommitUnit
from omega.sim.live_run import SyncConfig
from omega.sim.what_if import Pace, Scenario, drained_names, paces_of, rules_of, speedup_of
from omega.store.saved.cell import SavedCell
from omega.sync.choice import Sync
from omega.terminal.options import read_pairs

AS_IT_WAS: Final = "simulated"
WHAT_IF: Final = "what if"
"""Names of the variants."""
REPLICAS_MAX: Final = 1_000
"""Of all kinds; each is simulated with a view of its own."""
_SECONDS: Final = "S|KIND=S,..."


@dataclass(frozen=True, kw_only=True)
class WhatIfPlan:
    """What is to be otherwise; a field is an option, and None leaves it as it was."""

    schedulers: Annotated[
        str | None,
        typer.Option(
            metavar="KIND=N,...",
            help="So many of these kinds; KIND:sequence=N chooses the rule. 0: none of a kind.",
        ),
    ] = None
    rule: Annotated[
        ConflictRule | None, typer.Option(help="When a claim conflicts, for all kinds.")
    ] = None
    granularity: Annotated[
        CommitUnit | None, typer.Option(help="What a refused claim does to its siblings.")
    ] = None
    t_job: Annotated[
        str | None,
        typer.Option(
            metavar=_SECONDS,
            help="Decision time of a job. If nobody reported how long deciding took, it also"
            " stands for that.",
        ),
    ] = None
    t_task: Annotated[
        str | None, typer.Option(metavar=_SECONDS, help="And for each of its tasks.")
    ] = None
    placing: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="Kind of scheduler that places the jobs instead, or batch=KIND+service=KIND.",
        ),
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="[KIND:]NAME=VALUE",
            help="A setting of the schedulers' own; may be given again.",
        ),
    ] = None
    precedence_gap: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=PRECEDENCE_GAP_MAX,
            metavar="N",
            help="By how much a job's precedence must be higher to evict another's tasks.",
        ),
    ] = None
    sync: SyncBy = Sync.DELTA
    gap: Gap = GAP_S
    parts: PartsOf = None
    add_machines: Annotated[
        int,
        typer.Option(
            min=0, max=MACHINES_MAX, metavar="N", help="So many more, like those that are there."
        ),
    ] = 0
    drain: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A machine that takes no claims; a star stands for any text; may be given again.",
        ),
    ] = None
    speedup: Speedup = None

    @property
    def changes(self) -> dict[str, object]:
        """What was asked for, without what stays as it was, as JSON types."""
        defaults = {one.name: one.default for one in fields(self)}
        return {
            name: as_json(value) for name, value in vars(self).items() if value != defaults[name]
        }

    def variants(self, cell: SavedCell) -> dict[str, Variant]:
        """Return the cell as it was and, if anything is to be otherwise, as it would be, by name.

        Raises BadInput, SettingsError or UnknownScheduler for what cannot be simulated.
        """
        was = Variant(self._as_it_was(cell))
        changed = Variant(
            self._changed(cell, was.scenario),
            self.placing,
            tuple(self.settings or ()),
            self.granularity,
        )
        variants = {AS_IT_WAS: was} if changed == was else {AS_IT_WAS: was, WHAT_IF: changed}
        for variant in variants.values():
            variant.maker()  # raises now, not in a worker
        return variants

    def _as_it_was(self, cell: SavedCell) -> Scenario:
        rules = rules_of(cell)
        if not rules:
            raise BadInput("no scheduler committed anything in the time that was saved")
        if sum(map(len, rules.values())) > REPLICAS_MAX:
            raise BadInput(f"more than {REPLICAS_MAX:,} replicas committed, too many to simulate")
        return Scenario(
            rules=rules,
            paces=self._known_paces(rules, paces_of(cell)),
            precedence_gap=cell.precedence_gap,
            speedup=self.speedup or speedup_of(cell),
        )

    def _changed(self, cell: SavedCell, was: Scenario) -> Scenario:
        rules = self._rules(was.rules)
        if self.sync is Sync.PARTITIONED:
            refuse_uneven_parts(self.parts, sum(map(len, rules.values())))
        elif self.gap != GAP_S:
            raise BadInput("only --sync partitioned has a gap", field="--gap")
        refuse_undivided_parts(self.sync, self.parts)
        for option, text in (("--t-job", self.t_job), ("--t-task", self.t_task)):
            if unknown := _seconds(text, rules, option).keys() - rules.keys():
                raise BadInput(f"no {min(unknown)} is simulated", field=option)
        return replace(
            was,
            rules=rules,
            paces={
                kind: self._changed_pace(kind, pace)
                for kind, pace in self._known_paces(rules, was.paces).items()
            },
            sync=SyncConfig(by=self.sync, gap_s=self.gap, parts=self.parts or 0),
            precedence_gap=self.precedence_gap or was.precedence_gap,
            machines_added=self.add_machines,
            drained=drained_names(cell, self.drain or []),
            gangs=self.granularity is CommitUnit.GANG,
        )

    def _rules(
        self, was: Mapping[str, tuple[ConflictRule, ...]]
    ) -> dict[str, tuple[ConflictRule, ...]]:
        """Return the rule of each replica, by kind."""
        rules = {
            kind: tuple(self.rule or rule for rule in replicas) for kind, replicas in was.items()
        }
        if self.schedulers is not None:
            wanted = read_replica_sets(self.schedulers)
            for kind in {one.kind for one in wanted}:
                rules[kind] = ()
            for one in wanted:
                usual = was.get(one.kind, (ConflictRule.FIT,))[0]
                rules[one.kind] += (one.rule or self.rule or usual,) * one.replicas
        return {kind: replicas for kind, replicas in sorted(rules.items()) if replicas}

    def _known_paces(self, kinds: Collection[str], known: Mapping[str, Pace]) -> dict[str, Pace]:
        """Return the pace of each kind; what nobody reported is what the options say."""
        t_job, t_task = self._decision_times(kinds)
        for kind in kinds:
            if kind not in known and kind not in t_job:
                raise BadInput(
                    f"nobody reported how long {kind} takes to decide: say it", field="--t-job"
                )
        return {
            kind: known[kind]
            if kind in known
            else Pace(decision=DecisionTime(job_s=t_job[kind], task_s=t_task.get(kind, 0.0)))
            for kind in kinds
        }

    def _changed_pace(self, kind: str, pace: Pace) -> Pace:
        t_job, t_task = self._decision_times([kind])
        decision = DecisionTime(
            job_s=t_job.get(kind, pace.decision.job_s),
            task_s=t_task.get(kind, pace.decision.task_s),
        )
        return replace(pace, decision=decision)

    def _decision_times(self, kinds: Collection[str]) -> tuple[dict[str, float], dict[str, float]]:
        return _seconds(self.t_job, kinds, "--t-job"), _seconds(self.t_task, kinds, "--t-task")


def _seconds(text: str | None, kinds: Collection[str], option: str) -> dict[str, float]:
    """Read `S`, for all kinds, or `KIND=S,...`; return the seconds by kind. Raises BadInput."""
    if text is None:
        return {}
    if "=" not in text:
        return dict.fromkeys(kinds, _second(text, option))
    pairs = read_pairs(text.split(","), option=option)
    return {kind: _second(value, option) for kind, value in pairs}


def _second(text: str, option: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= DECISION_S_MAX:  # nan is not, either
        raise BadInput(
            f"{text!r} does not read as 0 to {DECISION_S_MAX:,.0f} seconds", field=option
        )
    return seconds
