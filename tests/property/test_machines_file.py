"""A list of machines that a person writes is machines as promised, or bad input with its place."""

import csv
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from omega.limits import LIMITS
from omega.model.machines import Machines
from omega.model.names import is_printable_name
from omega.model.resources import DEVICES, GPU_SLICES, Kind
from omega.workload.machines_file import COLUMNS, KEYS, MACHINES_MAX, read_machines
from tests.fixtures.doses import examples
from tests.property.refusals import returns_or_bad_input

Read = Callable[[str | bytes, str], Machines | None]

WORDS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=6).filter(
    is_printable_name  # some letters are invisible, such as the Hangul filler
)
CELLS = st.text(max_size=5) | st.sampled_from(
    ["", "0", "1", "8", "9", "-1", "1.5", "1e3", "nan", "\u0663", "1_0", "2147483647", "2147483648"]
)
SCALARS = CELLS | st.none() | st.booleans() | st.integers() | st.floats()
LIKE_A_MACHINE = st.dictionaries(
    st.sampled_from([*KEYS, "zone"]), SCALARS | st.lists(SCALARS, max_size=2) | st.just({"zone": 1})
)


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read a text as a file of this kind; None if it is refused."""

    def read(text: str | bytes, suffix: str) -> Machines | None:
        path = tmp_path / f"cell{suffix}"
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        machines = returns_or_bad_input(lambda: read_machines(path))
        if machines is not None:
            assert_as_promised(machines)
        return machines

    return read


def assert_as_promised(machines: Machines) -> None:
    assert 1 <= len(machines) <= MACHINES_MAX
    assert len(set(machines.names)) == len(machines)
    assert (machines.capacity <= LIMITS.amount_max).all()
    assert (machines.capacity[:, DEVICES] % GPU_SLICES == 0).all()
    for name in (*machines.names, *machines.attributes):
        assert name.strip()
        assert name.isprintable()
    for values in machines.attributes.values():
        assert all(value is None or value.isprintable() for value in values)


MACHINES = st.lists(
    st.fixed_dictionaries(
        {
            "name": WORDS,
            "cpu_milli": st.integers(0, LIMITS.amount_max),
            "memory_mib": st.integers(0, LIMITS.amount_max),
            "disk_mib": st.integers(0, LIMITS.amount_max),
            "gpus": st.integers(0, 8),
            "zone": st.none() | WORDS,
        }
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda machine: str(machine["name"]),
)


@given(MACHINES)
def test_what_is_written_is_read(read: Read, told: list[dict[str, object]]) -> None:
    rows = StringIO(newline="")
    writer = csv.DictWriter(rows, list(told[0]))
    writer.writeheader()
    writer.writerows(told)
    in_yaml = [
        {
            **{key: value for key, value in machine.items() if key != "zone"},
            "attributes": {"zone": machine["zone"]},
        }
        for machine in told
    ]

    for machines in (read(rows.getvalue(), ".csv"), read(yaml.safe_dump(in_yaml), ".yaml")):
        assert machines is not None
        assert [machine["name"] for machine in told] == list(machines.names)
        for kind in (Kind.CPU_MILLI, Kind.MEMORY_MIB, Kind.DISK_MIB):
            expected = [machine[kind.name.lower()] for machine in told]
            assert expected == machines.capacity[:, kind].tolist()
        gpus = machines.capacity[:, DEVICES].sum(axis=1) // GPU_SLICES
        assert [machine["gpus"] for machine in told] == gpus.tolist()
        assert [machine["zone"] for machine in told] == list(
            machines.attributes.get("zone", [None] * len(told))
        )


@examples(300)
@given(st.lists(st.sampled_from([*COLUMNS, "zone", "zone", ""]) | CELLS, max_size=8), st.data())
def test_any_table_is_machines_or_bad_input(
    read: Read, columns: list[str], data: st.DataObject
) -> None:
    rows = StringIO(newline="")
    writer = csv.writer(rows)
    writer.writerow(["name", "cpu_milli", "memory_mib", *columns])
    width = 3 + len(columns)
    for _ in range(data.draw(st.integers(0, 3))):
        row = data.draw(st.lists(CELLS, min_size=width - 1, max_size=width + 1))
        writer.writerow([data.draw(WORDS), *row[1:]])

    read(rows.getvalue(), ".csv")


@examples(300)
@given(st.lists(LIKE_A_MACHINE | SCALARS, max_size=3) | LIKE_A_MACHINE | SCALARS)
def test_any_yaml_is_machines_or_bad_input(read: Read, value: object) -> None:
    read(yaml.safe_dump(value, allow_unicode=True), ".yaml")


@given(st.binary() | st.text(), st.sampled_from([".csv", ".yaml", ".yml"]))
@example(b"", ".csv")
@example(b"\xff\xfe", ".csv")
@example("name,cpu_milli,memory_mib\n" + "a,1,1\n" * 3, ".csv")
@example("[" * 9_000, ".yaml")
def test_any_content_is_machines_or_bad_input(
    read: Read, content: str | bytes, suffix: str
) -> None:
    read(content, suffix)


@pytest.mark.parametrize("suffix", [".csv", ".yaml"])
def test_a_short_file_is_no_cell_that_fills_the_memory(read: Read, suffix: str) -> None:
    """Each line may stand for many; all of them together may not stand for too many."""
    lines = 1_000
    if suffix == ".csv":
        head, line = "name,cpu_milli,memory_mib,count\n", "m{},1,1,100000\n"
    else:
        head, line = "", "- {{name: m{}, cpu_milli: 1, memory_mib: 1, count: 100000}}\n"

    assert read(head + "".join(line.format(at) for at in range(lines)), suffix) is None
