"""The cost of a commit: omega's, beside unjudged writes, Postgres' own ways, and one committer.

All ways write the same rows into the same tables of one database, in alternating slices. No
machine is ever full: the benchmark measures the cost of commits, not of refusals.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.table import Table

from benchmarks.client import OMEGA
from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seconds, Seed, Smoke, numbers, words
from benchmarks.postgres import statements
from benchmarks.postgres.baselines import BASELINES, install
from benchmarks.ratios import milliseconds, paired
from benchmarks.workers import CONTENTIONS, Order, Slice, Workers, alternate, one_committer, workers
from omega.errors import InvariantBroken
from omega.limits import LIMITS
from omega.plots.picture import Picture, series, steps
from omega.store.postgres.connection import Link
from omega.terminal.progress import progress_bar

LABELS: Final = {
    "omega-fit": "omega, fit rule",
    "omega-sequence": "omega, sequence rule",
    "raw": "raw: unjudged, locks in no order",
    "serializable": "SERIALIZABLE, with retries",
    "serializable-promising": "SERIALIZABLE that promises the same",
    "pessimistic": "locks first (FOR UPDATE), then decides",
    "one-committer": "one committer",
    "one-committer-together": "one committer that writes together",
}
HEADERS: Final = {
    "omega-sequence": "seq.",
    "raw": "raw",
    "serializable": "ser.",
    "serializable-promising": "ser.+",
    "pessimistic": "lock",
    "one-committer": "one",
    "one-committer-together": "one+",
}
"""The same, abbreviated."""
VARIANTS: Final = (*OMEGA, *BASELINES)
OURS: Final = VARIANTS[0]
CEILING: Final = "raw"
"""The upper bound: this way judges nothing, so it is unusable and no rival."""
COMPARED_AT: Final = 4
"""Number of clients for which the summary compares the ways."""
CLIENTS_MAX: Final = 16
"""Each client has up to four connections, and the embedded server takes a hundred."""
MACHINES_MAX: Final = 100_000
ROUNDS_MAX: Final = 1_000


@dataclass(frozen=True, kw_only=True)
class Commit:
    """The parameters of the benchmark."""

    contention: tuple[str, ...] = CONTENTIONS
    claims: tuple[int, ...] = (1, 10, 100, 1_000)
    clients: tuple[int, ...] = (1, 2, 4, 8)
    variants: tuple[str, ...] = VARIANTS
    machines: int = 10_000
    rounds: int = 3
    seconds: float = 240.0
    seed: int = 0

    @property
    def orders(self) -> list[Order]:
        """The orders for each way: contention, claims of a transaction, number of clients."""
        cells = list(product(self.contention, self.claims, self.clients))
        slice_s = self.seconds / (len(cells) * self.rounds * len(self.variants))
        return [
            Order(variant=OURS, contention=contention, claims=claims, clients=n, seconds=slice_s)
            for contention, claims, n in cells
        ]

    @property
    def compared_at(self) -> int:
        """The number of clients for which the summary compares the ways."""
        return COMPARED_AT if COMPARED_AT in self.clients else max(self.clients)

    def measure(self, stage: Stage) -> Findings:
        """Carry out all orders; after each, check that the database holds what was granted."""
        rows: list[dict[str, Any]] = []
        done: Counter[str] = Counter()
        rng = np.random.default_rng(self.seed)
        with (
            stage.database() as url,
            one_committer(url) as address,
            workers(
                url, clients=max(self.clients), machines=self.machines, address=address
            ) as all_,
            closing(statements.connect(url)) as link,
            progress_bar(stage.output.console) as progress,
        ):
            install(url)
            turns = len(self.orders) * self.rounds * len(self.variants)
            bar = progress.add_task("", total=turns)
            for order in self.orders:
                statements.empty(link)
                progress.update(bar, description=_named(order))
                ways = {
                    variant: partial(all_.do, replace(order, variant=variant), self.seed)
                    for variant in self.variants
                }
                slices: dict[str, list[Slice]] = {variant: [] for variant in ways}
                for variant, one in alternate(ways, self.rounds, rng):
                    slices[variant].append(one)
                    progress.advance(bar)
                    stage.go_on()
                done.update(_checked(slices, all_, link))
                rows += _rows(order, slices)
        summary = {"clients": self.compared_at, "omega_over": self._compared(rows)}
        return Findings(self.finding(rows), rows, summary, {**done, "violations": 0})

    def show(self, findings: Findings) -> Table:
        """Return omega's rate by the fit rule, and its ratio to each other way's rate."""
        others = [variant for variant in self.variants if variant != OURS]
        table = Table(box=None, pad_edge=False, header_style="bold")
        for header in ("contention", "claims", "clients", "claims/s", "p99 ms"):
            table.add_column(header, justify="left" if header == "contention" else "right")
        for variant in others:
            table.add_column(f"/ {HEADERS[variant]}", justify="right")
        for order in self.orders:
            cell = {row["variant"]: row for row in findings.rows if _of(row, order)}
            ours = cell[OURS]
            table.add_row(
                order.contention,
                f"{order.claims:,}",
                str(order.clients),
                f"{ours['claims_per_s']:,.0f}",
                f"{ours['p99_ms']:.2f}",
                *(_times(cell[variant]["omega_over"]) for variant in others),
            )
        return table

    def draw(self, findings: Findings) -> Picture:
        """Return claims per second by clients, with a panel for each size and contention."""
        picture = Picture(
            findings.finding,
            rows=len(self.claims),
            columns=len(self.contention),
            note=f"{self.machines:,} machines, none ever full; medians of {self.rounds} slices of"
            f" {self.orders[0].seconds:.2g} s each, taken in turns on one server;"
            " faster: beyond the interval of the ratio",
        )
        for (row, claims), (column, contention) in product(
            enumerate(self.claims), enumerate(self.contention)
        ):
            panel = picture.panels[row][column]
            for variant in self.variants:
                points = [
                    (one["clients"], one["claims_per_s"])
                    for one in findings.rows
                    if (one["variant"], one["contention"], one["claims"])
                    == (variant, contention, claims)
                ]
                series(panel, VARIANTS.index(variant), points, LABELS[variant])
            steps(panel, self.clients)
            panel.set_ylim(bottom=0)
            panel.set_title(f"{contention}, {_claims(claims)} a transaction", fontsize=10)
            panel.set_xlabel("clients")
            panel.set_ylabel("claims granted, 1/s")
        return picture

    def _compared(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return omega's ratio to each way, by contention and claims of a transaction."""
        found: dict[str, Any] = {}
        for row in rows:
            if row["clients"] == self.compared_at and row["variant"] != OURS:
                of_way = found.setdefault(row["variant"], {})
                of_way.setdefault(row["contention"], {})[str(row["claims"])] = row["omega_over"]
        return found

    def finding(self, rows: Sequence[Mapping[str, Any]]) -> str:
        """Return a sentence that compares omega with the upper bound and with its best rival."""
        there = [row for row in rows if row["clients"] == self.compared_at and row["omega_over"]]
        said = [_beside_ceiling(there), _beside_rivals(there)]
        return f"{self.compared_at} clients: {'; '.join(part for part in said if part)}"


def _beside_ceiling(rows: Sequence[Mapping[str, Any]]) -> str:
    ratios = [row["omega_over"]["median"] for row in rows if row["variant"] == CEILING]
    if not ratios:
        return ""
    return f"omega commits at {min(ratios):.2f} to {max(ratios):.2f} x the rate of unjudged writes"


def _beside_rivals(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a phrase on the rival that is faster than omega most often; on a tie, by the most."""
    by_rival: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["variant"] not in {*OMEGA, CEILING}:
            by_rival.setdefault(row["variant"], []).append(row)
    if not by_rival:
        return ""
    settings = max(map(len, by_rival.values()))
    won = {
        rival: sorted(
            (row for row in ones if row["omega_over"]["upper"] < 1),
            key=lambda row: float(row["omega_over"]["median"]),
        )
        for rival, ones in by_rival.items()
    }
    won = {rival: ones for rival, ones in won.items() if ones}
    if not won:
        return f"no rival is faster in any of {settings} settings"
    best = max(won, key=lambda rival: (len(won[rival]), -won[rival][0]["omega_over"]["median"]))
    most = won[best][0]
    return (
        f"the best rival, {LABELS[best]}, is faster in {len(won[best])} of {settings} settings,"
        f" by up to {1 / most['omega_over']['median']:.2f} x"
        f" ({most['contention']}, {_claims(most['claims'])})"
    )


def _claims(number: int) -> str:
    return "1 claim" if number == 1 else f"{number:,} claims"


def _checked(slices: Mapping[str, Sequence[Slice]], all_: Workers, link: Link) -> Counter[str]:
    """Return what was done; raise InvariantBroken unless the database agrees."""
    done: Counter[str] = Counter()
    for variant, ones in slices.items():
        done[f"claims granted, {variant}"] = sum(one.granted for one in ones)
    granted = done.total()
    done["transactions"] = sum(one.transactions for ones in slices.values() for one in ones)
    all_.check(granted)
    recorded = statements.count_transactions(link)
    if recorded != done["transactions"]:
        raise InvariantBroken(f"{done['transactions']} transactions, {recorded} on record")
    return done


def _rows(order: Order, slices: Mapping[str, Sequence[Slice]]) -> list[dict[str, Any]]:
    """Return one row per way; `omega_over` is the median of the rounds' ratios."""
    ours = [one.claims_per_s for one in slices[OURS]]
    rows = []
    for variant, ones in slices.items():
        rates = [one.claims_per_s for one in ones]
        verdicts = sum((one.verdicts for one in ones), Counter[str]())
        ratio = paired(ours, rates)
        rows.append(
            {
                "contention": order.contention,
                "claims": order.claims,
                "clients": order.clients,
                "variant": variant,
                "claims_per_s": round(float(np.median(rates)), 1),
                "omega_over": None if ratio is None else ratio.rounded(),
                **milliseconds(np.concatenate([one.latencies_s for one in ones])),
                "transactions": sum(one.transactions for one in ones),
                "verdicts": dict(verdicts),
                "repeats": dict(sum((one.repeats for one in ones), Counter[str]())),
            }
        )
    return rows


def _named(order: Order) -> str:
    return f"{order.contention}, {order.claims:,} claims, {order.clients} clients"


def _of(row: Mapping[str, Any], order: Order) -> bool:
    return all(row[name] == getattr(order, name) for name in ("contention", "claims", "clients"))


def _times(ratio: Mapping[str, float] | None) -> str:
    return "-" if ratio is None else f"{ratio['median']:.2f}"


SMOKE: Final = Commit(
    contention=("disjoint", "hot"),
    claims=(1, 20),
    clients=(2,),
    machines=40,
    rounds=1,
    seconds=0.2,
)


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    clients: Annotated[str, typer.Option(metavar="N,...", help="Clients at a time.")] = "1,2,4,8",
    claims: Annotated[
        str, typer.Option(metavar="N,...", help="Claims of a transaction.")
    ] = "1,10,100,1000",
    contention: Annotated[
        str, typer.Option(metavar="NAME,...", help="Where they claim.")
    ] = ",".join(CONTENTIONS),
    variants: Annotated[
        str, typer.Option(metavar="NAME,...", help="Ways to commit beside omega's fit rule.")
    ] = ",".join(VARIANTS[1:]),
    machines: Annotated[int, typer.Option(min=16, max=MACHINES_MAX, metavar="N")] = 10_000,
    rounds: Annotated[
        int, typer.Option(min=1, max=ROUNDS_MAX, metavar="N", help="Slices of each way.")
    ] = 3,
    seconds: Seconds = None,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """Claims committed a second, beside unjudged writes and other ways to keep a cell whole.

    Takes five minutes; --seconds 1800 gives calmer figures.
    """
    asked = Commit(
        contention=words(contention, option="--contention", known=CONTENTIONS),
        claims=numbers(claims, option="--claims", most=LIMITS.claims_per_transaction_max),
        clients=numbers(clients, option="--clients", most=CLIENTS_MAX),
        variants=(OURS, *words(variants, option="--variants", known=VARIANTS[1:])),
        machines=machines,
        rounds=rounds,
        seed=seed,
    )
    benchmark = SMOKE if smoke else asked
    benchmark = benchmark if seconds is None else replace(benchmark, seconds=seconds)
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
