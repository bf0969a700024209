"""A trace's files, damaged in any way, are a workload that can be played, or bad input."""

import gzip
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from omega.limits import LIMITS
from omega.model.jobs import JobSpec
from omega.model.wire import spec_from_wire, spec_to_wire
from omega.workload.arrivals import Workload
from omega.workload.traces.detect import LOADERS, detect
from tests.fixtures.doses import examples
from tests.property.refusals import returns_or_bad_input

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
TABLES = [
    (trace, path.name)
    for trace in sorted(LOADERS)
    for path in sorted((SAMPLES / trace).glob("*.csv"))
]
NUMBERS = ("-1", "0", "1e400", "1e-400", "nan", "inf", "-inf", "0x1", "1_0", "\u0663", " 1")
HUGE = ("9" * 25, "9" * 5_000, "2147483648", "9223372036854775808", "x" * 201)
CELLS = st.text(max_size=6) | st.sampled_from(
    ["", *NUMBERS, *HUGE, '"', "T4", "a|a", "|", "\u202e"]
)
Grid = list[list[str]]


def sample(table: tuple[str, str]) -> bytes:
    return (SAMPLES / table[0] / table[1]).read_bytes()


def grid_of(table: tuple[str, str]) -> Grid:
    return [line.split(",") for line in sample(table).decode().splitlines()]


def written(grid: Grid) -> bytes:
    return "\n".join(",".join(row) for row in grid).encode("utf-8", "surrogatepass")


@examples(300)
@given(st.sampled_from(TABLES), st.data())
def test_a_trace_with_some_cells_changed(table: tuple[str, str], data: st.DataObject) -> None:
    grid = grid_of(table)
    for _ in range(data.draw(st.integers(1, 4))):
        row = data.draw(st.sampled_from(grid))
        row[data.draw(st.integers(0, len(row) - 1))] = data.draw(CELLS)

    load_with(*table, written(grid))


@examples(200)
@given(st.sampled_from(TABLES), st.data())
def test_a_trace_with_rows_and_columns_lost_doubled_and_moved(
    table: tuple[str, str], data: st.DataObject
) -> None:
    grid = grid_of(table)
    for _ in range(data.draw(st.integers(1, 3))):
        change = data.draw(st.sampled_from([lose, double, swap]))
        if data.draw(st.booleans()):
            grid = change(grid, data)
        elif grid:
            columns = change([list(column) for column in zip(*grid, strict=True)], data)
            grid = [list(row) for row in zip(*columns, strict=True)]

    load_with(*table, written(grid))


def lose(lines: Grid, data: st.DataObject) -> Grid:
    at = data.draw(st.integers(0, len(lines)))
    return lines[:at] + lines[at + 1 :]


def double(lines: Grid, data: st.DataObject) -> Grid:
    at = data.draw(st.integers(0, len(lines)))
    return lines[: at + 1] + lines[at:]


def swap(lines: Grid, data: st.DataObject) -> Grid:
    return data.draw(st.permutations(lines))


@examples(30)
@given(st.sampled_from(TABLES), st.data())
def test_the_order_of_columns_does_not_matter(table: tuple[str, str], data: st.DataObject) -> None:
    columns = [list(column) for column in zip(*grid_of(table), strict=True)]
    moved = [list(row) for row in zip(*data.draw(st.permutations(columns)), strict=True)]

    expected = map(summary, load_with(*table, sample(table)))
    assert list(expected) == list(map(summary, load_with(*table, written(moved))))


@examples(100)
@given(st.sampled_from(TABLES), st.binary() | st.text().map(str.encode))
@example(("omega-sim", "W2.csv"), b"")
@example(("omega-sim", "W2.csv"), b"\n\n")
@example(("omega-sim", "W2.csv"), b"\x00")
def test_a_trace_with_any_bytes_for_a_table(table: tuple[str, str], content: bytes) -> None:
    load_with(*table, content)
    load_with(*table, content, packed=True)


@examples(50)
@given(st.sampled_from(TABLES), st.integers(0, 400))
def test_a_gzipped_trace_that_is_cut_short(table: tuple[str, str], at: int) -> None:
    whole = gzip.compress(sample(table))

    assert None in load_with(*table, whole[: min(at, len(whole) - 1)], packed=True)


@examples(150)
@given(st.sampled_from(TABLES), st.integers(0, 10_000), st.integers(1, 255))
def test_a_gzipped_trace_with_a_byte_changed_is_not_read_otherwise(
    table: tuple[str, str], at: int, by: int
) -> None:
    whole = bytearray(gzip.compress(sample(table), mtime=0))
    whole[at % len(whole)] ^= by
    read = load_with(*table, bytes(whole), packed=True)

    # The header has bytes that mean nothing to us: when it was packed, and on what system.
    for damaged, right in zip(read, load_with(*table, sample(table)), strict=True):
        assert damaged is None or summary(damaged) == summary(right)


@given(st.sampled_from(TABLES), st.binary(min_size=1, max_size=20))
def test_what_follows_a_gzipped_trace_is_read_or_bad_input(
    table: tuple[str, str], more: bytes
) -> None:
    load_with(*table, gzip.compress(sample(table)) + more, packed=True)
    load_with(*table, gzip.compress(sample(table)) + gzip.compress(more), packed=True)


@examples(50)
@given(st.sampled_from(TABLES))
def test_a_trace_without_one_of_its_tables(table: tuple[str, str]) -> None:
    trace, name = table
    with TemporaryDirectory() as folder:
        lay_out(Path(folder), trace, without=name)
        returns_or_bad_input(lambda: detect(Path(folder)).load(Path(folder), rng()))


def load_with(
    trace: str, name: str, content: bytes, *, packed: bool = False
) -> list[Workload | None]:
    """Load a sample of which one table has this content instead, with each option in turn.

    None stands for a refusal.
    """
    with TemporaryDirectory() as folder:
        lay_out(Path(folder), trace, without=name)
        (Path(folder) / (name + ".gz" * packed)).write_bytes(content)

        def load(options: dict[str, str]) -> Workload | None:
            loader = LOADERS[trace]
            return returns_or_bad_input(lambda: loader.load(Path(folder), rng(), **options))

        read = [load(options) for options in options_of(LOADERS[trace].options)]
    for workload in (one for one in read if one is not None):
        assert_playable(workload)
    return read


def lay_out(folder: Path, trace: str, *, without: str) -> None:
    for path in (SAMPLES / trace).glob("*.csv"):
        if path.name != without:
            (folder / path.name).write_bytes(path.read_bytes())


def options_of(known: Mapping[str, tuple[str, ...]]) -> list[dict[str, str]]:
    """Return the defaults, and each option's other values by themselves."""
    return [{}, *({name: value} for name, values in known.items() for value in values[1:])]


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def assert_playable(workload: Workload) -> None:
    """Whatever a store asks of machines and jobs holds; the rest is asserted where it is made."""
    names = workload.machines.names
    assert len(set(names)) == len(names)
    assert all(name and name.isprintable() for name in names)
    assert (workload.machines.capacity <= LIMITS.amount_max).all()
    for spec in (*workload.prefill.jobs, *(arrival.spec for arrival in workload.arrivals)):
        assert_submittable(spec)
    assert all(0 <= arrival.submit_s < 2**40 for arrival in workload.arrivals)
    assert (workload.prefill.machine < len(names)).all()


def assert_submittable(spec: JobSpec) -> None:
    """A store takes the job: the limits, and the wire."""
    assert spec == spec_from_wire(spec_to_wire(spec))
    assert 1 <= len(spec.name) <= LIMITS.name_length_max
    assert spec.name.isprintable()
    assert spec.tasks <= LIMITS.tasks_per_job_max
    assert len(spec.groups) <= LIMITS.task_groups_per_job_max
    for group in spec.groups:
        amounts = (group.cpu_milli, group.memory_mib, group.disk_mib)
        assert max(amounts) <= LIMITS.amount_max
        assert (group.duration_ms or 0) <= LIMITS.duration_ms_max
        assert len(group.constraints) <= LIMITS.constraints_per_group_max


def summary(workload: Workload | None) -> object:
    """Return what there is to compare; None for a refusal."""
    if workload is None:
        return None
    prefill = workload.prefill
    return (
        workload.machines.names,
        workload.machines.capacity.tobytes(),
        dict(workload.machines.attributes),
        workload.arrivals,
        prefill.jobs,
        prefill.shapes[prefill.shape].tobytes(),
        prefill.machine.tobytes(),
    )
