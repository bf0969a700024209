"""What every trace loader does with folders and options."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from omega.errors import BadInput
from omega.workload.arrivals import Prefill, Workload
from omega.workload.synthetic import uniform_machines
from omega.workload.traces.loader import Tables, TraceLoader


def read(tables: Tables, options: Mapping[str, str], rng: np.random.Generator) -> Workload:
    said = (*sorted(tables), *(f"{name}={value}" for name, value in options.items()))
    return Workload(
        "toy", uniform_machines(1, cpus=1, memory_gib=1), Prefill.none(), (), notes=said
    )


TOY = TraceLoader(
    name="toy",
    tables={"nodes": ("nodes.csv",), "old": ("old.csv",), "new": ("new.csv",)},
    alternatives=frozenset({"old", "new"}),
    options={"pace": ("slow", "fast")},
    read=read,
)
RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("files", "recognised"),
    [
        ([], False),
        (["nodes.csv"], False),
        (["old.csv"], False),
        (["nodes.csv", "new.csv.gz"], True),
        (["nodes.csv.gz", "old.csv", "new.csv"], True),
    ],
)
def test_a_folder_needs_all_tables_and_one_of_the_alternatives(
    tmp_path: Path,
    files: list[str],
    recognised: bool,  # noqa: FBT001 - a column of the table
) -> None:
    for name in files:
        (tmp_path / name).touch()

    assert recognised == TOY.recognises(tmp_path)


def test_the_first_value_of_an_option_is_its_default(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").touch()
    (tmp_path / "old.csv").touch()

    assert ("nodes", "old", "pace=slow") == TOY.load(tmp_path, RNG).notes
    assert "pace=fast" in TOY.load(tmp_path, RNG, pace="fast").notes


def test_an_unknown_option_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"field pase: .*did you mean 'pace'"):
        TOY.load(tmp_path, RNG, pase="slow")


def test_an_unknown_value_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="field pace: 'quick' is not one of slow, fast"):
        TOY.load(tmp_path, RNG, pace="quick")


def test_a_folder_without_the_files_is_told_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"looked for nodes\.csv, old\.csv or new\.csv"):
        TOY.load(tmp_path, RNG)
