"""Whatever is submitted, no screen and no sentence does anything to a terminal."""

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import pytest
import typer
from rich.cells import cell_len
from rich.console import RenderableType

from omega.cli.audit.screens import audit_screen
from omega.cli.cell.machine_lines import closed_table
from omega.cli.cell.machine_names import choose
from omega.cli.cell.machine_screen import machine_screen
from omega.cli.db import doctor
from omega.cli.demo.picture import draw, titled
from omega.cli.demo.run import DemoReplica, Played
from omega.cli.demo.screen import Moment, Screen, line, picture
from omega.cli.demo.summary import Result
from omega.cli.job import listing as jobs
from omega.cli.job.screens import job_screen, jobs_table
from omega.cli.quota.screens import quotas_table
from omega.cli.scheduler import commands as scheduler
from omega.cli.status.command import status_screen
from omega.cli.usage.screens import usage_screen
from omega.clock import ManualClock
from omega.errors import BadInput, InvariantBroken, OmegaError, SettingsError, did_you_mean
from omega.events import StoreCallFailed
from omega.framework.kinds import Registered
from omega.lifecycle.states import ParkReason, State
from omega.model.allocations import Allocations
from omega.model.arrays import integers
from omega.model.claims import ConflictRule
from omega.model.machines import MachineState
from omega.model.quotas import Budget, Quota, QuotaScope, QuotaUse
from omega.model.resources import amounts
from omega.model.round_summary import RoundSummary, TypeUse
from omega.processes.supervisor import Child, ChildSpec
from omega.reports.audit import AuditReport
from omega.reports.cell import CellReport
from omega.reports.jobs import JobReport, row_of, why_waiting
from omega.reports.machines import MachineReport
from omega.reports.printable import DETAIL_MAX, NAME_MAX, escaped, short
from omega.reports.processes import LatestFacts, lines_of, total_line
from omega.reports.usage import UsageReport
from omega.store.holdings import Holding, Holdings, IdleCause, IdleJob
from omega.store.loading import NOTHING
from omega.store.postgres.health.findings import Finding, Severity
from omega.store.rounds import LastRound
from omega.store.status import JobStatus, Notice, ProcessReport, Violation
from omega.store.usage import Consumer, Usage, UsageBy, Used
from omega.terminal.process_log import ProcessLog
from omega.terminal.program import run_command_line
from omega.terminal.terminal import PrintableConsole
from omega.testing.builders import a_cell, a_snapshot
from omega.workload.audit_policy import AuditPolicy, ShareLimit
from tests.fixtures.command_line import Omega
from tests.unit.cli.hostile_texts import (
    HOSTILE,
    LONG,
    LONG_AND_UNPRINTABLE,
    groups,
    raw_in,
    without_styles,
)
from tests.unit.cli.job.test_screens import a_progress, a_status
from tests.unit.cli.test_screens import a_moment, a_use
from tests.unit.reports.test_work import ROUND, SHARE, WORK

WIDTHS = (40, 80, 200)
TEXTS = [*groups(), LONG, LONG_AND_UNPRINTABLE]
IDS = [*(f"group {number}" for number in range(len(groups()))), "long", "long and unprintable"]
Value = TypeVar("Value")


def spoiled(value: Value, text: str) -> Value:
    """Return a dataclass with all its texts replaced: also those that it will have one day."""
    names = [field.name for field in fields(value)]  # type: ignore[arg-type]
    texts = dict.fromkeys((name for name in names if type(getattr(value, name)) is str), text)
    assert texts, f"{value} has no text"
    return replace(value, **texts)  # type: ignore[type-var]


def jobs_of(text: str) -> list[JobStatus]:
    states = [spoiled(a_status(state), text) for state in State if state is not State.PARKED]
    parked = [spoiled(a_status(State.PARKED, park_reason=reason), text) for reason in ParkReason]
    return states + parked


def quotas_of(text: str) -> list[QuotaUse]:
    limits = dict.fromkeys(Budget, 7)
    return [
        QuotaUse(spoiled(Quota(scope, "x", limits), text), dict.fromkeys(Budget, left))
        for scope, left in zip(QuotaScope, (0, -1), strict=True)
    ]


def reports_of(text: str) -> list[ProcessReport]:
    counted = {"refused": {text: 3, f"{text}!": 5}, text: 1}
    facts = {"totals": counted, "window": counted, "speedup": text, text: text}
    report = spoiled(ProcessReport("batch", "0", 1, 0, 0, facts), text)
    return [report, replace(report, kind="nodes")]


def a_round(text: str) -> list[LastRound]:
    types = [TypeUse(text, 4, 2), TypeUse(f"{text}!", 4, 2)]
    return [replace(ROUND, scheduler=text, summary=RoundSummary(text, types, [SHARE]))]


def a_machine(text: str) -> MachineReport:
    snapshot = a_snapshot(replace(a_cell(1), names=(text,)), used={1: {"cpu_milli": 500}})
    notice = Notice(1, amounts(cpu_milli=500), 60_000)
    one = integers([1])
    return MachineReport(
        name=text,
        row=snapshot.rows,
        attributes={text: text, f"{text}!": text},
        live=Allocations(one, one, one, amounts(cpu_milli=500)[None], one, one),
        jobs={1: replace(spoiled(a_status(State.RUNNING), text), id=1)},
        notice=notice,
    )


def job_screens(text: str) -> Iterator[RenderableType]:
    progress = replace(a_progress(7), kind=(text,))
    told = [job for job in jobs_of(text) if job.park_reason in (None, ParkReason.OVER_QUOTA)]
    for job, kinds in [(told[0], ()), *((job, (text,)) for job in told)]:
        why = why_waiting(job, kinds, quotas_of(text))
        work = replace(WORK, kind=text, share=replace(SHARE, type=text, share={text: 0.5}))
        places = {0: text, 1: text, 2: f"{text}!"}
        yield job_screen(JobReport(job, places, progress, why, work=work))


def closed(text: str) -> RenderableType:
    cell = replace(a_cell(2), names=(text, f"{text}!"))
    snapshot = a_snapshot(cell, state={1: MachineState.DOWN})
    table = closed_table(snapshot, [Notice(2, amounts(cpu_milli=500), 60_000)])
    assert table is not None
    return table


def a_hostile_moment(text: str) -> Moment:
    reports = reports_of(text)
    lines, total = lines_of(reports), total_line([report.facts for report in reports])
    return a_moment(lines=lines, total=total, events=[text, text])


def a_result(text: str) -> Result:
    ledger = LatestFacts()
    ledger.note(reports_of(text))
    child = Child(ChildSpec(text, ()), Path())
    rules = (ConflictRule.FIT, ConflictRule.SEQUENCE)
    return Result(
        played=Played(ledger, a_use(), 1.0, dry=True, submitted=1),
        loaded=NOTHING,
        load_machines_s=0.1,
        machines=2,
        members=[DemoReplica(text, f"{text}{n}", rule, child) for n, rule in enumerate(rules)],
        speedup=1.0,
        notes=(text,),
        violations=[spoiled(Violation("used", "machine 1", "too much"), text)],
        interrupted=True,
    )


def findings_of(text: str) -> list[Finding]:
    return [spoiled(Finding("what", severity, "a", "b", "c"), text) for severity in Severity]


def an_audit(text: str) -> AuditReport:
    limit = ShareLimit(Fraction(1, 10))
    scope = QuotaScope.TENANT
    policy = AuditPolicy(named={(scope, text): limit}, every={scope: limit}, idle_ms=0)
    names = (scope, text), (scope, f"{text}!"), (QuotaScope.SCHEDULER, text)
    by = [Holding(*name, 1, (500_000, 0, 0, 0)) for name in names]
    return AuditReport.judged(
        Holdings(0, 1, (1_000, 1_000, 0, 0), by, unknown=3),
        policy,
        [IdleJob(1, text, text, text, cause, 1, 2, 0, (1_000, 0, 0, 0)) for cause in IdleCause],
    )


def a_usage(text: str, by: UsageBy) -> UsageReport:
    used = Used(runs=3, held_us=(10**12, 10**12, 0, 10**12), attempted=1, waited_us=7)
    whose = Consumer(text, 1, text, text) if by is UsageBy.JOB else Consumer(text)
    return UsageReport(Usage(by, 0, 1, ((whose, used),) * 30, used, 3, unknown=3, oldest_ms=1))


SCREENS: dict[str, Callable[[str, int], Sequence[RenderableType]]] = {
    "jobs": lambda text, _: [jobs_table(jobs_of(text))],
    "job": lambda text, _: list(job_screens(text)),
    "status": lambda text, width: [
        status_screen(
            CellReport(reports_of(text), a_use(), (), quotas_of(text), a_round(text)), width
        )
    ],
    "quotas": lambda text, _: [quotas_table(quotas_of(text))],
    "closed machines": lambda text, _: [closed(text)],
    "machine": lambda text, _: [machine_screen(a_machine(text))],
    "audit": lambda text, _: [audit_screen(an_audit(text), has_policy=True)],
    "usage": lambda text, _: [usage_screen(a_usage(text, by)) for by in UsageBy],
    "doctor": lambda text, _: [doctor.screen(findings_of(text))],
    "demo": lambda text, width: [picture(a_hostile_moment(text), width)],
    "result of a demo": lambda text, _: [a_result(text).figures(), titled("x", text)],
}


def printed(parts: Sequence[RenderableType], width: int, *, coloured: bool = False) -> str:
    file = io.StringIO()
    console = PrintableConsole(
        file=file,
        width=width,
        force_terminal=coloured,
        color_system="truecolor" if coloured else None,
    )
    for part in parts:
        console.print(part)
    return file.getvalue()


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("text", TEXTS, ids=IDS)
def test_no_screen_shows_anything_raw(screen: str, width: int, text: str) -> None:
    parts = SCREENS[screen](text, width)
    plain = printed(parts, width)

    assert [] == raw_in(plain)
    assert plain == without_styles(printed(parts, width, coloured=True))
    assert all(cell_len(line) <= width for line in plain.split("\n"))
    assert len(plain) < len(parts) * 200 * DETAIL_MAX


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("text", groups(), ids=IDS[: len(groups())])
def test_a_screen_shows_a_text_as_what_is_seen_of_it(screen: str, text: str) -> None:
    """So that no line of it is a line of the screen's, and nothing of it goes unseen."""
    seen, drawn = (printed(SCREENS[screen](one, 200), 200) for one in (escaped(text), text))

    assert seen == drawn


def test_a_detail_is_cut_and_the_document_has_it_all() -> None:
    job = replace(a_status(State.PARKED, park_reason=ParkReason.NO_ROOM), park_detail="@" * 50_000)
    why = why_waiting(job, ["batch"])
    assert why is not None

    written = printed([job_screen(JobReport(job, {}, a_progress(), why))], 80)

    assert DETAIL_MAX - 1 == written.count("@")
    assert job.park_detail == row_of(job)["park_detail"] == asdict(why)["evidence"]


def test_a_name_is_cut() -> None:
    written = printed([job_screen(JobReport(a_status(name=LONG), {}, a_progress(), None))], 400)

    assert f"{'x' * (NAME_MAX - 1)}…" in written
    assert "x" * NAME_MAX not in written


def test_a_command_to_copy_is_one_command() -> None:
    why = why_waiting(replace(a_status(), scheduler="x; rm -rf ~\n"), [])

    assert why is not None
    assert "omega scheduler run 'x; rm -rf ~\n'" == why.next_step


@pytest.mark.parametrize("text", TEXTS, ids=IDS)
@pytest.mark.parametrize("terminal", [False, True])
def test_a_demo_shows_nothing_raw(text: str, tmp_path: Path, *, terminal: bool) -> None:
    file = io.StringIO()
    console = PrintableConsole(file=file, width=100, force_terminal=terminal, color_system=None)
    moment = a_hostile_moment(text)
    with Screen(console) as screen:
        screen.show(moment)
        screen.show(replace(moment, phase="load"))
    a_result(text).show(console, [(text, text)])
    draw(tmp_path / "demo.svg", "demo", [*screen.of_the_load(96), titled(text, text)])

    assert [] == raw_in(without_styles(file.getvalue(), live=True))
    assert [] == raw_in((tmp_path / "demo.svg").read_text())
    assert short(text) in line(replace(moment, phase=short(text)))


ERRORS: dict[str, Callable[[str], BaseException]] = {
    "OmegaError": OmegaError,
    "BadInput": lambda text: BadInput(text, file=text, line=7, field=text),
    "SettingsError": lambda text: SettingsError([text, text]),
    "InvariantBroken": lambda text: InvariantBroken(text, story=[text, text]),
    "OSError": lambda text: OSError(2, text, text),
    "BadParameter": typer.BadParameter,
    "did you mean": lambda text: OmegaError(f"no {text!r}{did_you_mean(f'{text}?', [text])}"),
}


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("text", TEXTS, ids=IDS)
def test_a_complaint_is_printable_and_short(
    omega: Omega, monkeypatch: pytest.MonkeyPatch, kind: str, text: str
) -> None:
    def command() -> None:
        raise ERRORS[kind](text)

    monkeypatch.setattr(jobs, "command", command)
    ran = omega("jobs")

    assert ran.code in (1, 2)
    assert [] == raw_in(ran.err)
    assert "Traceback" not in ran.err
    assert len(ran.err) < 15_000


@pytest.mark.parametrize("kind", ERRORS)
def test_a_complaint_says_what_is_seen_of_a_text(
    omega: Omega, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    said: list[str] = []
    text = "a\n9 fine\x1b[2J\u202e"
    for one in (escaped(text), text):

        def command(one: str = one) -> None:
            raise ERRORS[kind](one)

        monkeypatch.setattr(jobs, "command", lambda command=command: command())
        said.append(omega("jobs").err.replace("\\\\", "\\"))

    assert said[0] == said[1]


@pytest.mark.parametrize("text", TEXTS[:-2], ids=IDS[:-2])
def test_what_is_typed_is_complained_of_printably(omega: Omega, text: str) -> None:
    for words in ([text], ["jobs", f"--{text}"], ["jobs", "--state", text]):
        ran = omega(*words)

        assert 2 == ran.code
        assert [] == raw_in(ran.err)


def test_our_own_mistakes_have_printable_tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    beneath = io.StringIO()
    monkeypatch.setattr(sys, "stderr", beneath)

    def command() -> None:
        raise RuntimeError(TEXTS[0])

    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(command)
    with pytest.raises(RuntimeError) as raised:
        run_command_line("x", [], lambda: app)
    sys.__excepthook__(raised.type, raised.value, raised.tb)

    assert "RuntimeError" in beneath.getvalue()
    assert [] == raw_in(beneath.getvalue())


@pytest.mark.parametrize("text", TEXTS, ids=IDS)
def test_a_line_of_a_log_is_one_line(capsys: pytest.CaptureFixture[str], text: str) -> None:
    ProcessLog(text, ManualClock())(StoreCallFailed(text, text))

    err = capsys.readouterr().err
    assert [] == raw_in(err)
    assert 1 == err.count("\n")
    assert len(err) < 3 * DETAIL_MAX


@pytest.mark.parametrize("text", TEXTS, ids=IDS)
def test_schedulers_of_any_name_are_listed(
    omega: Omega, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    kind = spoiled(Registered("a", "b", "c"), text)
    monkeypatch.setattr(scheduler, "registered", lambda: [kind])

    for words in (["scheduler", "list"], ["scheduler", "list", "--json", "-"]):
        ran = omega(*words)

        assert 0 == ran.code
        assert [] == raw_in(ran.out + ran.err)


def test_a_machine_that_is_not_there_is_complained_of_in_a_line(omega: Omega) -> None:
    text = HOSTILE["makes a line"]
    snapshot = a_snapshot(replace(a_cell(1), names=(text,)))
    with pytest.raises(BadInput) as raised:
        choose(snapshot, [f"{text}?"], None)

    assert "\n" not in str(raised.value)
    found: Any = choose(snapshot, [text], None)
    assert [] == raw_in(found.counted())
