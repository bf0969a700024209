"""Choosy's experiments at toy size, and exact small cases of what they compare with."""

from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.choosy import EXPERIMENTS, ORDERS, PICKINESS
from benchmarks.choosy_cell import (
    BY_JOB,
    BY_TENANT,
    RampPlay,
    Reference,
    SharesPlay,
    TenantCell,
    compare_shares,
    ramp_up,
)
from benchmarks.choosy_claims import claims_of
from benchmarks.choosy_tenants import read_sizes, site
from omega.errors import BadInput
from omega.model.arrays import integers
from omega.model.jobs import Constraint, Operator
from omega.reports.fairness import FairnessReport
from omega.testing.builders import a_cell
from omega.workload.traces.openb import GPU_MODEL
from tests.benchmarks.conftest import PNG, Bench

SAMPLES = Path(__file__).parents[1] / "samples"
SMALL = SharesPlay(
    order="choosy",
    seed=3,
    openb=None,
    philly=None,
    every=1,
    task_s=2.0,
    gap_s=0.2,
    replicas=1,
    constraints=BY_TENANT,
    load=1.5,
    lasts=2.5,
    ramp=2.0,
    look=0.25,
)


def only(model: str) -> tuple[Constraint, ...]:
    return (Constraint(GPU_MODEL, Operator.IN, (model,)),)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_order_and_every_pickiness_is_run(bench: Bench, experiment: str) -> None:
    ran = bench("choosy", "--experiments", experiment)

    settings = {row.get("order", row.get("pickiness")) for row in ran.rows}
    assert settings == set(PICKINESS if experiment == "ramp-up" else ORDERS[experiment])
    assert ran.document["digest"]["tasks placed"] == sum(row["tasks_placed"] for row in ran.rows)
    assert "a made-up stand-in" in ran.document["summary"]["finding"]
    assert ran.picture.startswith(PNG)


def test_the_folders_of_both_traces_are_read() -> None:
    found = site(SAMPLES / "openb", SAMPLES / "philly", every=1)

    assert ("vc-a", "vc-b", "vc-c") == found.tenants
    assert [[1, 2], [1, 4], [1]] == [sizes.tolist() for sizes in found.sizes]
    assert [2, 8] == found.gpus.tolist()
    assert [(Constraint(GPU_MODEL, Operator.IN, ("T4", "A10")),)] == found.mix


def test_one_trace_without_the_other_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATA_DIR", str(tmp_path))
    with pytest.raises(SystemExit) as end:
        main(["run", "choosy", "--smoke", "--openb", str(SAMPLES / "openb")])

    assert 2 == end.value.code
    assert "--philly: name the folders of both traces or of none" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("vc,num_gpus\na,0\n", "'0' is not a whole number from 1"),
        ("vc,num_gpus\n", "there is no job in it"),
        ("vc\na\n", "the column is missing"),
    ],
)
def test_a_bad_list_of_jobs_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "jobs.csv").write_text(text)
    with pytest.raises(BadInput, match=sentence):
        read_sizes(tmp_path)


def test_a_folder_without_jobs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"does not hold the trace philly \(looked for jobs.csv"):
        read_sizes(tmp_path)


def test_fair_shares_are_the_exact_ones_of_what_runs_and_waits() -> None:
    machines = a_cell(6, gpus=1, attributes={GPU_MODEL: ["B", "B", "A", "A", "A", "A"]})
    cell = TenantCell(SMALL, machines)
    for tenant, constraints in (("x", only("B")), ("y", only("B")), ("z", ())):
        cell.submit([cell.job(tenant, 6, constraints, ends=False)])
    cell.run(1.0)
    reference = Reference(machines, ("x", "y", "z"), integers([1] * 6))
    share = reference.shares(cell)
    report = {row.name: row.fair_share for row in FairnessReport.read(cell.store).tenants}

    assert [1 / 6, 1 / 6, 4 / 6] == pytest.approx(share.tolist())
    assert dict(zip("xyz", share.tolist(), strict=True)) == pytest.approx(report)
    assert 6 == sum(cell.held().values())


def test_the_seed_alone_decides_and_fair_orders_are_nearer_than_fifo() -> None:
    play = replace(SMALL, constraints=BY_JOB)
    first, again = compare_shares(play), compare_shares(play)
    fifo = compare_shares(replace(play, order="fifo"))

    assert first == again
    assert first["rms_mean"] < fifo["rms_mean"]
    assert [0.25 * number for number in range(1, 11)] == pytest.approx(
        [look["at"] for look in first["looks"]], abs=0.05
    )
    for look in first["looks"]:
        assert sum(look["fair"]) <= 1 + 1e-3
        assert 0 < look["used"] <= 1


def test_with_one_lane_a_tenant_drf_serves_as_choosy_does() -> None:
    choosy, drf = (compare_shares(replace(SMALL, order=order)) for order in ("choosy", "drf"))

    assert choosy == drf


def test_a_newcomer_gets_the_given_part_of_what_it_may_use() -> None:
    play = RampPlay(
        **{name: getattr(SMALL, name) for name in ("openb", "philly", "every", "replicas")},
        order="choosy",
        seed=1,
        task_s=4.0,
        gap_s=0.1,
        pickiness=0.5,
        arrivals=2,
    )
    ran = ramp_up(play)

    assert 2 == ran["tenants"]
    assert ran["allowed"] // 2 == ran["wanted"]
    assert log(2) == pytest.approx(np.mean(ran["took"]), rel=0.35)


def rows_in_which_all_claims_hold() -> list[dict[str, Any]]:
    distance = {"choosy": (0.01, 0.001), "drf": (0.05, 0.01), "fifo": (0.3, 0.05)}
    rows: list[dict[str, Any]] = [
        {
            "experiment": "shares",
            "constraints": constraints,
            "order": order,
            "relative_mean": relative,
            "rms_p90": rms,
        }
        for constraints in (BY_TENANT, BY_JOB)
        for order, (relative, rms) in distance.items()
        if order != "drf" or constraints == BY_JOB
    ]
    for pickiness in PICKINESS:
        theory = log(1 / (1 - pickiness))
        rows.append(
            {
                "experiment": "ramp-up",
                "pickiness": pickiness,
                "theory": theory,
                "took_mean": theory * 1.04,
                "took_sd": None,
                "arrivals": 1,
            }
        )
    return rows


@pytest.mark.parametrize(
    ("row", "change", "fails"),
    [
        (0, {"relative_mean": 0.021}, [0]),
        (0, {"rms_p90": 0.002}, [1]),
        (1, {"rms_p90": 0.0005}, [2]),
        (2, {"relative_mean": 0.03}, [3]),
        (3, {"relative_mean": 0.005}, [5]),
        (5, {"took_mean": 0.112}, [6]),
        (7, {"took_mean": 2.18}, [8]),
    ],
)
def test_each_claim_can_fail(row: int, change: dict[str, float], fails: list[int]) -> None:
    rows = rows_in_which_all_claims_hold()
    assert all(claim.holds for claim in claims_of(rows))
    assert 9 == len(claims_of(rows))
    rows[row].update(change)

    assert fails == [at for at, claim in enumerate(claims_of(rows)) if not claim.holds]
