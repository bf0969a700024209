"""What an operator says of the ML-GPU scheduler, and what will not do."""

import json
import sys
from pathlib import Path

import pytest

from omega.errors import BadInput, SettingsError
from omega.framework.scheduler import Scheduler
from omega.limits import LIMITS
from schedulers.ml_gpu import MlGpuScheduler
from schedulers.ml_gpu.live import GpuRounds
from schedulers.ml_gpu.settings import read_settings, rounds_config
from tests.contract.stranger import RoomiestScheduler


def test_without_settings_it_plans_job_by_job() -> None:
    assert MlGpuScheduler.configured({}).rounds is None


def test_with_the_length_of_a_round_it_plans_by_rounds() -> None:
    scheduler = MlGpuScheduler.configured({"round": "360"})

    assert isinstance(scheduler.rounds, GpuRounds)
    assert 360_000 == scheduler.rounds.length_ms
    assert MlGpuScheduler.rounds is None


def test_all_that_can_be_said() -> None:
    said = {
        "round": "0.25",
        "policy": "finish_time_fairness_perf",
        "resets_after": "7",
        "gpu_attribute": " accelerator ",
    }

    plays = rounds_config(read_settings(said))

    assert (250, "finish_time_fairness_perf", 7) == (
        plays.length_ms,
        plays.policy.name,
        plays.resets_after,
    )
    assert ("accelerator", None) == (plays.attribute, plays.table)


def test_what_is_not_said_is_as_in_gavel() -> None:
    plays = rounds_config(read_settings({"round": "360"}))

    assert ("max_min_fairness_perf", 5, "gpu_model") == (
        plays.policy.name,
        plays.resets_after,
        plays.attribute,
    )


def test_rates_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rates.json"
    path.write_text(json.dumps({"v100": {str(("A3C", 1)): {"null": 2.5}}}))

    table = rounds_config(read_settings({"round": "1", "throughputs": str(path)})).table

    assert table is not None
    assert [[2.5]] == table.rates.tolist()


@pytest.mark.parametrize(
    ("said", "field", "says"),
    [
        ({"rounds": "360"}, "--set", "'rounds'; did you mean 'round'? (known: round, policy"),
        ({"round": "1", "polcy": "x"}, "--set", "did you mean 'policy'?"),
        ({"round": "1", "": "x"}, "--set", "there is no setting ''"),
        ({"policy": "fifo"}, "--set", "their length is missing; say for example round=360"),
        ({"round": ""}, "round", "'' will not do"),
        ({"round": "soon"}, "round", "'soon' will not do"),
        ({"round": "0"}, "round", "'0' will not do"),
        ({"round": "-1"}, "round", "'-1' will not do"),
        ({"round": "nan"}, "round", "'nan' will not do"),
        ({"round": "inf"}, "round", "a round of inf s will not do"),
        ({"round": "0.009"}, "round", "a round of 0.009 s will not do"),
        ({"round": str(LIMITS.duration_ms_max)}, "round", "will not do"),
        ({"round": "1", "resets_after": "0"}, "resets_after", "'0' will not do"),
        ({"round": "1", "resets_after": "2.5"}, "resets_after", "'2.5' will not do"),
        ({"round": "1", "gpu_attribute": "  "}, "gpu_attribute", "'  ' will not do"),
        ({"round": "1", "policy": "fifo_prf"}, "policy", "did you mean 'fifo_perf'?"),
        ({"round": "1", "policy": "fifo_packed"}, "policy", "live rounds do not have it"),
        ({"round": "1", "policy": "allox"}, "policy", "takes no gangs"),
        ({"round": "1", "policy": "max_sum_throughput_perf_SLOs"}, "policy", "deadlines"),
        ({"round": "1", "throughputs": "/nowhere/rates"}, None, "cannot be read"),
        ({"round": "1", "throughputs": ""}, None, "cannot be read"),
    ],
)
def test_what_cannot_be_used_is_named(said: dict[str, str], field: str | None, says: str) -> None:
    with pytest.raises(BadInput) as refused:
        MlGpuScheduler.configured(said)

    assert field == refused.value.field
    assert says in str(refused.value)


class _NotInstalled:
    """Finds that a solver is missing, as the settings are imported."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == "schedulers.ml_gpu.settings":
            raise ModuleNotFoundError(name="highspy")


def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "schedulers.ml_gpu.settings")
    monkeypatch.setattr(sys, "meta_path", [_NotInstalled, *sys.meta_path])

    with pytest.raises(SettingsError, match=r"omega-scheduler\[ml-gpu\]"):
        MlGpuScheduler.configured({"round": "1"})


@pytest.mark.parametrize("kind", [RoomiestScheduler])
def test_other_kinds_have_no_settings(kind: type[Scheduler]) -> None:
    with pytest.raises(BadInput, match=f"there is no setting 'round': {kind.kind} has none"):
        kind.configured({"round": "360"})

    assert kind.configured({}).rounds is None
