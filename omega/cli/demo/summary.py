"""The demo's result, for people and for scripts.

Goal     Report at the end what was placed, what conflicted, what is left, and what is broken.
Promise  The keys of the summary stay as they are: scripts rely on them.
Source   omega.metrics.facts; ReaderStore.verify.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from omega.cli.demo.run import DemoReplica, Played
from omega.cli.screens import LEGEND, schedulers_table, verdicts_line
from omega.lifecycle.states import State
from omega.metrics.facts import Facts, merge
from omega.reports.cell import allocated, shares
from omega.reports.printable import printable
from omega.reports.processes import ProcessState, conflicts_of, line_of, total_line
from omega.reports.wording import count, fraction, share, things
from omega.store.loading import Loaded
from omega.store.status import CellUse, Violation
from omega.terminal.terminal import PrintableConsole

VIOLATIONS_SHOWN: Final = 20
HOLDS: Final = Text("every invariant holds", "green")


@dataclass(frozen=True)
class Result:
    """The result of a demo."""

    played: Played
    loaded: Loaded
    load_machines_s: float
    machines: int
    members: Sequence[DemoReplica]
    speedup: float
    notes: Sequence[str]
    violations: Sequence[Violation]
    interrupted: bool

    def summary(self) -> dict[str, Any]:
        """Return the figures by the names that scripts rely on."""
        facts = self.played.ledger.schedulers()
        totals, use = facts["totals"], self.played.use
        jobs = use.jobs_by_state
        tasks = int(totals.get("tasks_placed", 0))
        placed = jobs.get(State.RUNNING, 0) + jobs.get(State.SUCCEEDED, 0)
        return {
            "tasks_placed": tasks,
            "jobs_placed": max(0, placed - self.loaded.jobs),
            "jobs_parked": {r.value: n for r, n in sorted_by_count(use.parked_by_reason)},
            "jobs_left": use.jobs_waiting,
            "jobs_submitted": self.played.submitted,
            "tasks_per_second": round(tasks / self.played.load_s, 1) if self.played.load_s else 0.0,
            "conflict_fraction": facts["measures"]["conflict_fraction"] or 0.0,
            "conflicts": conflicts_of(facts),
            "claims": int(totals.get("claims", 0)),
            "allocated": allocated(use),
            "rules": self._rules(),
            "violations": len(self.violations),
            "restarts": sum(member.child.restarts for member in self.members),
            "load_s": round(self.played.load_s, 3),
            "queue_dry": self.played.dry,
            "interrupted": self.interrupted,
            "prefill": {**asdict(self.loaded), "machines": self.machines},
            "load_machines_s": round(self.load_machines_s, 3),
            "speedup": self.speedup,
            "notes": list(self.notes),
        }

    def rows(self) -> list[dict[str, object]]:
        """Return one row per scheduler."""
        return [
            {
                "scheduler": member.kind,
                "replica": member.replica,
                "rule": member.rule.value,
                "restarts": member.child.restarts,
                **self._facts(member)["measures"],
                "totals": self._facts(member)["totals"],
            }
            for member in self.members
        ]

    def show(self, console: PrintableConsole, next_steps: Sequence[tuple[str, str]]) -> None:
        """Print the result for a person."""
        lines = [
            line_of(member.name, ProcessState.ENDED, self._facts(member), recent=False)
            for member in self.members
        ]
        total = total_line([self._facts(member) for member in self.members], recent=False)
        console.print()
        console.print(schedulers_table(lines, total, width=console.width, with_state=False))
        console.print(LEGEND)
        console.print()
        console.print(self.figures())
        console.print()
        self._show_violations(console)
        console.print("Where to look next", style="bold")
        longest = max(len(what) for _, what in next_steps)
        for command, what in next_steps:
            text = Text.assemble(f"{what:<{longest}}  ", (command, "cyan"))
            console.print(text, soft_wrap=True)

    def figures(self) -> Table:
        """Return the results as a few lines."""
        summary = self.summary()
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        table.add_row(
            "placed",
            f"{summary['tasks_placed']:,} tasks of {things(summary['jobs_placed'], 'job')},"
            f" {count(summary['tasks_per_second'])} a second over {summary['load_s']:.0f} s",
        )
        table.add_row("conflicts", _conflicts(summary))
        for kind, rules in summary["rules"].items():
            for rule, one in rules.items():
                conflict = fraction(one["conflict_fraction"])
                table.add_row(f"  {kind} by {rule}", f"{conflict}; {_refused(one)}")
        table.add_row("parked", _parked(summary["jobs_parked"]))
        if summary["restarts"]:
            table.add_row("restarts", f"{summary['restarts']} of schedulers that crashed")
        if summary["interrupted"]:
            table.add_row("ended", Text("early, as it was told to", "yellow"))
        if summary["jobs_left"]:
            table.add_row("still waiting", Text(things(summary["jobs_left"], "job"), "yellow"))
        table.add_row("allocated", _allocated(self.played.use))
        broken = summary["violations"]
        verified = Text(f"{broken} broken", "red bold") if broken else HOLDS
        table.add_row("verify", verified)
        return table

    def _rules(self) -> dict[str, dict[str, object]]:
        """Return the figures by kind and rule, for kinds whose replicas differ in the rule."""
        facts: dict[str, dict[str, list[Facts]]] = {}
        for member in self.members:
            of_kind = facts.setdefault(member.kind, {})
            of_kind.setdefault(member.rule.value, []).append(self._facts(member))
        return {
            kind: {rule: _conflict_figures(merge(*these)) for rule, these in rules.items()}
            for kind, rules in facts.items()
            if len(rules) > 1
        }

    def _facts(self, member: DemoReplica) -> dict[str, Any]:
        return self.played.ledger.of(member.kind, member.replica)

    def _show_violations(self, console: PrintableConsole) -> None:
        if not self.violations:
            return
        console.print(f"{things(len(self.violations), 'invariant')} broken:", style="red bold")
        for violation in self.violations[:VIOLATIONS_SHOWN]:
            text = f"{violation.invariant}: {violation.subject}: {violation.detail}"
            console.print(f"  {printable(text)}", highlight=False, soft_wrap=True)
        console.print()


def sorted_by_count(counts: Mapping[Any, float]) -> list[tuple[Any, float]]:
    """Return the entries, the largest first."""
    return sorted(counts.items(), key=lambda entry: -entry[1])


def _conflict_figures(facts: Facts) -> dict[str, Any]:
    totals = facts["totals"]
    return {
        "conflict_fraction": facts["measures"]["conflict_fraction"] or 0.0,
        "conflicts": conflicts_of(facts),
        "claims": int(totals.get("claims", 0)),
        "tasks_placed": int(totals.get("tasks_placed", 0)),
    }


def _conflicts(figures: Mapping[str, Any]) -> Text:
    text = Text(f"{fraction(figures['conflict_fraction'])} per conflict-free transaction; ")
    text.append(_refused(figures))
    if figures["conflicts"]:
        text.append(" and retried: ").append_text(verdicts_line(figures["conflicts"]))
    return text


def _refused(figures: Mapping[str, Any]) -> str:
    return f"{sum(figures['conflicts'].values()):,} of {figures['claims']:,} claims refused"


def _parked(reasons: Mapping[str, int]) -> Text:
    if not reasons:
        return Text("none", "green")
    total = sum(reasons.values())
    listed = ", ".join(f"{jobs:,} {reason}" for reason, jobs in reasons.items())
    return Text(f"{things(total, 'job')}: {listed}")


def _allocated(use: CellUse) -> str:
    return " · ".join(
        f"{name.removesuffix('_milli').removesuffix('_mib')} {share(one.part)}"
        for name, one in shares(use).items()
        if one.capacity
    )
