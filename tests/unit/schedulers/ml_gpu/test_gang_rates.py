"""Rates of gangs by a table."""

from pathlib import Path

import pytest

from omega.framework.rates import Gang, GangMachine, RateModel
from schedulers.ml_gpu.gang_rates import read_rates


def a_gang(kind: str, gpus: int, *machines: tuple[int, str | None]) -> Gang:
    """Return a gang on machines with so many GPUs of a type each."""
    there = [GangMachine(had, {"gpu_model": type_} if type_ else {}) for had, type_ in machines]
    return Gang(kind, gpus, there)


@pytest.mark.parametrize(
    ("gang", "rate"),
    [
        (a_gang("A", 1, (8, "v100")), 40.0),
        (a_gang("A", 1, (8, "k80")), 10.0),
        (a_gang("A", 1, (1, "v100"), (1, "k80")), 10.0),  # on two machines, where one would do
        (a_gang("A", 1, (4, "v100"), (4, "v100")), 20.0),
        (a_gang("C", 1, (4, "v100"), (4, "v100")), 100.0),  # spread: not in the table
        (a_gang("Z", 1, (8, "v100")), 0.0),
        (a_gang("A", 2, (8, "v100")), 0.0),
        (a_gang("A", 1, (8, "h100")), 0.0),
        (a_gang("A", 1, (1, "v100"), (1, "h100")), 0.0),
        (a_gang("A", 1, (1, "v100"), (1, None)), 0.0),
        (a_gang("A", 1, (1, None)), 0.0),
        (a_gang("A", 0, (0, "v100")), 0.0),
    ],
)
def test_the_rate_of_a_gang(samples: Path, gang: Gang, rate: float) -> None:
    path = samples / "gavel" / "simulation_throughputs.json"

    assert rate == read_rates(path, gpu_attribute="gpu_model").steps_per_s(gang)


@pytest.mark.parametrize(("machines", "rate"), [(1, 10.0), (2, 10.0), (3, 6.0)])
def test_a_gang_is_spread_on_more_machines_than_it_takes(
    tmp_path: Path, machines: int, rate: float
) -> None:
    path = tmp_path / "rates.json"
    path.write_text(
        """{"v100": {"('A', 8)": {"null": 10}}, "v100_unconsolidated": {"('A', 8)": {"null": 6}}}"""
    )

    model = read_rates(path, gpu_attribute="gpu_model")

    assert rate == model.steps_per_s(a_gang("A", 8, *[(4, "v100")] * machines))


def test_types_are_told_apart_by_the_attribute_that_is_named(samples: Path) -> None:
    path = samples / "gavel" / "simulation_throughputs.json"

    model = read_rates(path, gpu_attribute="accelerator")

    assert isinstance(model, RateModel)
    assert ("accelerator",) == model.attributes
    assert 40 == model.steps_per_s(Gang("A", 1, [GangMachine(8, {"accelerator": "v100"})]))
    assert 0 == model.steps_per_s(a_gang("A", 1, (8, "v100")))
