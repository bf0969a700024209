"""The interface of a benchmark, and its run: measure, check, write, show and draw."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from threading import Event
from typing import Any, ClassVar, Protocol

from rich.console import RenderableType

from benchmarks import environment
from benchmarks.postgres.statements import connect, server_settings
from omega.clock import Clock, RealClock
from omega.config import Settings, load_settings
from omega.plots.picture import Picture, refuse_undrawable
from omega.processes.stopping import stop_on_signals
from omega.store.opening import server
from omega.store.postgres.databases import recreated_database
from omega.terminal.consoles import Output
from omega.terminal.terminal import PrintableConsole

SUFFIX = "_bench"
"""Suffix that turns the name of the cell's database into that of a benchmark's."""


@dataclass(frozen=True)
class Findings:
    """The result of a benchmark."""

    finding: str
    """One sentence: the title of the picture, and the last line on the screen."""
    rows: Sequence[Mapping[str, Any]]
    summary: Mapping[str, Any]
    digest: Mapping[str, Any]
    """The work that was done, so that a faster wrong answer shows."""


@dataclass
class Stage:
    """The resources that a run gives to a benchmark."""

    output: Output
    clock: Clock
    stop: Event
    settings: Settings
    about: dict[str, object] = field(default_factory=environment.of_machine)
    """The environment of the run."""

    @contextmanager
    def database(self, name: str = "") -> Iterator[str]:
        """Yield the URL of a new, empty database; it is dropped afterwards."""
        with server(self.settings) as url:
            self.about["postgres"] = dict(_settings_of(url))
            with recreated_database(url, f"{SUFFIX}{name}", stays=False) as new:
                yield new

    def go_on(self) -> None:
        """Raise KeyboardInterrupt if a stop was asked for."""
        if self.stop.is_set():
            raise KeyboardInterrupt


class Benchmark(Protocol):
    """A dataclass of parameters that can be measured, and its findings shown.

    A field with repr=False is not in the document.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def measure(self, stage: Stage) -> Findings:
        """Do the work, check that it was done, and return the result."""
        ...

    def show(self, findings: Findings) -> RenderableType:
        """Return the rows for a screen."""
        ...

    def draw(self, findings: Findings) -> Picture:
        """Return a picture that is understood without a text beside it."""
        ...


def conduct(
    benchmark: Benchmark,
    *,
    json_to: str | None,
    plot_to: Path | None,
    data_dir: Path | None,
) -> Findings:
    """Run a benchmark; write, show, draw and return what it found."""
    output = Output(json_to)
    refuse_undrawable(plot_to)
    with stop_on_signals() as stop:
        stage = Stage(output, RealClock(stop), stop, load_settings(data_dir=data_dir))
        began = stage.clock.now()
        findings = benchmark.measure(stage)
        took_s = stage.clock.now() - began
    output.document(
        benchmark=type(benchmark).__module__.rpartition(".")[2],
        parameters={
            one.name: getattr(benchmark, one.name) for one in fields(benchmark) if one.repr
        },
        rows=findings.rows,
        summary={"finding": findings.finding, **findings.summary},
        environment={**stage.about, "took_s": round(took_s, 1)},
        digest=findings.digest,
    )
    present(benchmark, findings, output.console, plot_to)
    return findings


def present(
    benchmark: Benchmark, findings: Findings, console: PrintableConsole, plot_to: Path | None
) -> None:
    """Print the rows and the finding, and draw the picture if one is asked for."""
    console.print(benchmark.show(findings))
    console.print(findings.finding, style="bold")
    if plot_to is not None:
        picture = benchmark.draw(findings)
        claims = findings.summary.get("claims")
        if isinstance(claims, list):  # of some benchmarks it is the number of claims on machines
            picture.tell_claims(claims)
        picture.save(plot_to)


def _settings_of(url: str) -> Mapping[str, str]:
    with closing(connect(url)) as link:
        return server_settings(link)
