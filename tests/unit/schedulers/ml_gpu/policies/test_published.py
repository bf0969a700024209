"""The published instances: every policy comes to the true optimum."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from schedulers.ml_gpu.__main__ import build

pytestmark = pytest.mark.trace
BETWEEN = ("n128_single", "n128_cap")
"""Neither the smallest nor the largest of their sort."""
NAMES = (
    "textbook3",
    "n32_single",
    "n32_multi",
    "n32_cap",
    *(pytest.param(name, marks=pytest.mark.slow) for name in BETWEEN),
    "n512_single",
)
RULES = {"fifo_perf": "mean", "isolated": "mean"}
CLOSE = 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_reaches_its_optimum(published: Path, name: str) -> None:
    folder = published / "gavel" / "instances"
    reference = json.loads((folder / "reference.json").read_text())["instances"][name]
    instance = json.loads((folder / f"{name}.json").read_text())
    for policy, wanted in reference["policies"].items():
        said = ["solve", str(folder / f"{name}.json"), "--policy", policy, "--json", "-"]
        result = CliRunner().invoke(build(), said, catch_exceptions=False)
        summary = json.loads(result.stdout)["summary"]

        _assert_reached(summary, wanted, policy)
        _assert_feasible(summary, instance)


def _assert_reached(summary: dict[str, Any], wanted: dict[str, Any], policy: str) -> None:
    optimum = wanted.get("optimum")
    if policy in RULES:
        assert wanted["mean"] == pytest.approx(summary["objective"], rel=CLOSE)
        assert wanted["gpus"] == pytest.approx(list(summary["gpus_used"].values()), rel=CLOSE)
        assert wanted["sum_throughput"] == pytest.approx(
            summary["measures"]["sum_throughput"], rel=CLOSE
        )
    elif isinstance(optimum, dict):
        norm = np.array(summary["normalised_throughput"])
        wanted_norm = np.array(optimum.get("by_job", optimum.get("all_jobs")))
        np.testing.assert_allclose(norm, wanted_norm, rtol=CLOSE, err_msg=policy)
    else:
        assert optimum == pytest.approx(summary["objective"], rel=CLOSE), policy


def _assert_feasible(summary: dict[str, Any], instance: dict[str, Any]) -> None:
    share = np.array(summary["allocation"])
    gpus = instance["num_workers"]

    assert (share >= 0).all()
    assert (share.sum(axis=1) <= 1 + CLOSE).all()
    assert all(used <= gpus[name] * (1 + CLOSE) for name, used in summary["gpus_used"].items())
