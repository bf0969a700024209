"""The claims on Choosy's shares and ramp-up, with what was measured here."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.choosy_cell import BY_JOB, BY_TENANT
from benchmarks.paper.claims import Claim, where

Rows = Sequence[Mapping[str, Any]]

RELATIVE_MAX: Final = 0.02
RMS_MAX: Final = 0.002
RAMP_ERROR_MAX: Final = 0.05
SHARES: Final = "shares"
RAMP_UP: Final = "ramp-up"


def claims_of(rows: Rows) -> list[Claim]:
    """Return each claim on the experiments that were run, judged by the rows."""
    of_shares = [
        claim
        for constraints in (BY_TENANT, BY_JOB)
        if (found := where(rows, experiment=SHARES, constraints=constraints))
        for claim in _of_shares(constraints, {row["order"]: row for row in found})
    ]
    return of_shares + [_of_ramp(row) for row in where(rows, experiment=RAMP_UP)]


def _of_shares(constraints: str, by_order: Mapping[str, Mapping[str, Any]]) -> list[Claim]:
    choosy = by_order["choosy"]
    claims = [
        Claim(
            f"constraints {constraints}: Choosy's shares differ from constrained max-min fairness"
            " by at most 2 % on average (mean relative difference)",
            _percent(choosy, "relative_mean", 2),
            choosy["relative_mean"] <= RELATIVE_MAX,
        ),
        Claim(
            f"constraints {constraints}: for 90 % of the time Choosy's RMS error of the shares is"
            " below 0.2 % of the cell",
            _percent(choosy, "rms_p90", 3),
            choosy["rms_p90"] < RMS_MAX,
        ),
    ]
    if further := [row for order, row in by_order.items() if order != "choosy"]:
        claims.append(
            Claim(
                f"constraints {constraints}: {' and '.join(_name(row) for row in further)}"
                f" {'is' if len(further) == 1 else 'are'} further from fair (our own question)",
                ", ".join(
                    f"{_name(row)} {_percent(row, 'relative_mean', 2)} on average, RMS"
                    f" {_percent(row, 'rms_p90', 3)}"
                    for row in further
                ),
                all(
                    row[name] > choosy[name]
                    for row in further
                    for name in ("relative_mean", "rms_p90")
                ),
            )
        )
    return claims


def _of_ramp(row: Mapping[str, Any]) -> Claim:
    took, theory, sd = row["took_mean"], row["theory"], row["took_sd"]
    spread = "" if sd is None else f" (sd {sd:.3f}, {row['arrivals']} arrivals)"
    return Claim(
        f"a newcomer of pickiness {row['pickiness']:g} has its share after T ln(1 / (1 - p))"
        f" = {theory:.3f} T, within 5 %",
        f"{took:.3f} T{spread}, {took / theory - 1:+.1%}",
        abs(took / theory - 1) <= RAMP_ERROR_MAX,
    )


def _percent(row: Mapping[str, Any], measure: str, digits: int) -> str:
    sd = row.get("deviation", {}).get(measure)
    spread = "" if sd is None else f" (sd {sd * 100:.{digits}f})"
    return f"{row[measure] * 100:.{digits}f} %{spread}"


def _name(row: Mapping[str, Any]) -> str:
    return str(row["order"]).upper()
