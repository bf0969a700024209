"""Readers of rates by name."""

from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from omega.errors import BadInput, SettingsError
from omega.framework import rate_readers
from omega.framework.rate_readers import read_rates
from omega.framework.rates import Gang, RateModel
from schedulers.ml_gpu.gang_rates import TableRates

GAVEL = "schedulers.ml_gpu.gang_rates:read_rates"
STRANGER = f"{__name__}:read_one_rate"


class OneRate:
    """A stranger's model: all gangs are equally fast."""

    attributes: Sequence[str] = ()

    def __init__(self, path: Path) -> None:
        self.path = path

    def steps_per_s(self, gang: Gang) -> float:
        return float(self.path.read_text()) * gang.gpus


def read_one_rate(path: Path, *, gpu_attribute: str) -> OneRate:
    assert gpu_attribute
    return OneRate(path)


def read_nothing(path: Path, *, gpu_attribute: str) -> None:
    assert path.exists()
    assert gpu_attribute


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    """Return the entry points that are found: ours, and those that a test adds."""
    found: list[EntryPoint] = []
    monkeypatch.setattr(rate_readers, "entry_points", lambda *, group: list(found))
    add(found, "gavel", GAVEL)
    return found


def add(entries: list[EntryPoint], name: str, value: str) -> None:
    entries.append(EntryPoint(name, value, rate_readers.ENTRY_POINT_GROUP))


@pytest.fixture
def table(samples: Path) -> Path:
    return samples / "gavel" / "simulation_throughputs.json"


def read(said: object) -> RateModel:
    return read_rates(str(said), gpu_attribute="gpu_model")


@pytest.mark.parametrize("said", ["{}", "gavel:{}"])
def test_the_only_reader_need_not_be_named(
    entries: list[EntryPoint], table: Path, said: str
) -> None:
    assert 1 == len(entries)
    assert isinstance(read(said.format(table)), TableRates)


def test_the_installed_package_registers_gavels_tables(table: Path) -> None:
    assert isinstance(read(f"gavel:{table}"), TableRates)


def test_of_several_readers_one_is_named(entries: list[EntryPoint], tmp_path: Path) -> None:
    add(entries, "stranger", STRANGER)
    (tmp_path / "rate").write_text("2.5")

    model = read(f"stranger:{tmp_path / 'rate'}")

    assert 10 == model.steps_per_s(Gang("anything", 4, []))


def test_several_readers_are_listed_where_none_is_named(
    entries: list[EntryPoint], table: Path
) -> None:
    add(entries, "stranger", STRANGER)

    with pytest.raises(BadInput, match=r"NAME:FILE \(registered: gavel, stranger\)"):
        read(table)


def test_a_name_that_nobody_registered_is_answered_with_the_known_ones(
    entries: list[EntryPoint], table: Path
) -> None:
    add(entries, "stranger", STRANGER)

    with pytest.raises(
        BadInput, match=r"'gavle'; did you mean 'gavel'\? \(registered: gavel, stranger\)"
    ):
        read(f"gavle:{table}")


@pytest.mark.usefixtures("entries")
def test_a_files_name_may_hold_a_colon(table: Path, tmp_path: Path) -> None:
    path = tmp_path / "rates:of-today.json"
    path.write_text(table.read_text())

    assert isinstance(read(path), TableRates)


def test_without_a_reader_no_file_can_be_read(entries: list[EntryPoint], table: Path) -> None:
    entries.clear()

    with pytest.raises(BadInput, match="registered: none at all"):
        read(table)


def test_two_that_want_one_name_are_both_named(entries: list[EntryPoint], table: Path) -> None:
    add(entries, "gavel", GAVEL)
    assert isinstance(read(table), TableRates)
    add(entries, "gavel", STRANGER)

    with pytest.raises(SettingsError, match=r"registered twice, by schedulers\.ml_gpu.* and tests"):
        read(table)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("nowhere.at_all:read", "cannot be loaded: ModuleNotFoundError"),
        ("omega.limits:LIMITS", "is no function"),
        (f"{__name__}:read_nothing", "returns no RateModel"),
    ],
)
def test_a_reader_that_cannot_be_used_is_told_by_name(
    entries: list[EntryPoint], table: Path, value: str, said: str
) -> None:
    add(entries, "broken", value)

    with pytest.raises(SettingsError, match=f"'broken'.*{said}"):
        read(f"broken:{table}")


def test_a_reader_that_fails_is_told_by_name(entries: list[EntryPoint], table: Path) -> None:
    add(entries, "mine", "builtins:len")

    with pytest.raises(SettingsError, match="the reader of rates 'mine' failed: TypeError"):
        read(f"mine:{table}")


def test_a_name_that_is_too_long_for_a_file_is_bad_input() -> None:
    with pytest.raises(BadInput, match="no reader of rates is registered"):
        read("x:" + "a" * 5_000)
