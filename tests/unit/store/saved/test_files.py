"""A cell in a file: what is written is read again; what is no such file is told in a sentence."""

import gzip
import json
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omega.errors import BadInput
from omega.lifecycle.states import State
from omega.limits import LIMITS
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.model.wire import spec_to_wire
from omega.ordering.tenants import Tenant
from omega.store.saved.cell import SavedCell
from omega.store.saved.reading import LINE_BYTES_MAX, read_cell
from omega.store.saved.writing import lines_of, write_cell
from omega.testing.builders import a_spec
from tests.fixtures.saved_cells import (
    a_process,
    a_saved_cell,
    a_saved_job,
    a_scheduler,
    past,
    running,
    some_machines,
)

CELL = a_saved_cell(
    machines=some_machines(3, gpus=2),
    quotas=(Quota(QuotaScope.TENANT, "ann", {Budget.JOBS: 3}),),
    tenants=(Tenant("ann", 2, "org"), Tenant("org")),
    jobs=(
        a_saved_job(4, a_spec(3), state=State.PENDING, unplaced=((1, 2),), leased_s=-50),
        a_saved_job(9, state=State.SUCCEEDED),
    ),
    running=running((4, 0, 1, -40), (4, 2, 3, 7.5)),
    past=past((9, 0, 2, 1, 50)),
    processes=(a_process(facts={"thought_s": 1.5}),),
)
LINES = [
    *("cell", "machines", "quota", "tenant", "tenant", "job", "job", "running", "past"),
    *("scheduler", "process", "end"),
]
Edit = Callable[[dict[str, Any]], object]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cell.snapshot"


def write_lines(path: Path, lines: list[bytes]) -> Path:
    path.write_bytes(b"".join(lines))
    return path


def with_line(number: int, edit: Edit) -> list[bytes]:
    """Return the lines of the cell's file, one of them changed."""
    lines = list(lines_of(CELL))
    line = json.loads(lines[number - 1])
    edit(line)
    lines[number - 1] = json.dumps(line).encode() + b"\n"
    return lines


def setting(**values: object) -> Edit:
    return lambda line: line.update(values)


def refusal(path: Path) -> BadInput:
    with pytest.raises(BadInput) as caught:
        read_cell(path)
    return caught.value


def lines(cell: SavedCell) -> list[bytes]:
    return list(lines_of(cell))


def test_what_is_written_is_read_again(path: Path) -> None:
    size = write_cell(CELL, path)

    assert lines(CELL) == lines(read_cell(path))
    assert path.stat().st_size == size


def test_the_file_is_lines_of_json_in_order() -> None:
    assert LINES == [json.loads(line)["line"] for line in lines(CELL)]


def test_a_file_that_is_not_packed_is_read_too(path: Path) -> None:
    assert lines(CELL) == lines(read_cell(write_lines(path, lines(CELL))))


def test_the_same_cell_gives_the_same_bytes_which_only_the_owner_reads(path: Path) -> None:
    write_cell(CELL, path)
    first = path.read_bytes()
    write_cell(CELL, path)

    assert first == path.read_bytes()
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert [path] == list(path.parent.iterdir())


def test_a_cell_of_many_lines_of_machines_and_tasks_is_whole(path: Path) -> None:
    many = 2_500
    tasks = [(1, task, task + 1, 0.0) for task in range(many)]
    spec = a_spec(many)
    cell = a_saved_cell(
        machines=some_machines(many), jobs=(a_saved_job(1, spec),), running=running(*tasks)
    )
    write_cell(cell, path)

    again = read_cell(path)
    assert (many, many) == (len(again.machines), len(again.running))
    assert lines(cell) == lines(again)


@pytest.mark.parametrize(
    ("number", "edit", "field"),
    [
        (1, setting(version=2), "version"),
        (1, setting(version="1"), "version"),
        (1, setting(format="another"), "format"),
        (1, setting(taken_ms=-1), "taken_ms"),
        (1, setting(taken_ms=2**47), "taken_ms"),
        (1, setting(begin_ms=2**46), "begin_ms"),
        (1, setting(begin_ms=0), "begin_ms"),
        (1, setting(taken_ms=1.0), "taken_ms"),
        (1, setting(more=1), "more"),
        (1, lambda line: line.pop("begin_ms"), "begin_ms"),
        (2, setting(id=[1, 1, 2]), "id"),
        (2, setting(id=[1, 2]), "name"),
        (2, setting(id=[1, 2, 2**31]), "id.2"),
        (2, setting(name=["a", "a", "b"]), "name"),
        (2, setting(name=["a", "b\u202e", "c"]), "name"),
        (2, setting(name=["a", "b\n", "c"]), "name"),
        (2, setting(state=[0, 1, 4]), "state.2"),
        (2, setting(address=[None, "a b", None]), "address"),
        (2, setting(capacity={"cpu_milli": [1, 2, -3]}), "capacity.cpu_milli.2"),
        (2, setting(capacity={"wheels": [1, 2, 3]}), "capacity.wheels.[key]"),
        (2, setting(attributes={"zone": ["a"]}), "attributes.zone"),
        (2, setting(attributes={"zone": ["a", "\x1b[2J", None]}), "attributes"),
        (3, setting(limits={"jobs": -1}), "limits.jobs"),
        (3, setting(limits={"\x85": 1}), r"limits.'\x85'.[key]"),
        (3, setting(scope="everybody"), "scope"),
        (4, setting(weight=0), "weight"),
        (4, setting(weight=10_001), "weight"),
        (4, setting(parent="a\u202eb"), "parent"),
        (5, setting(name="ann"), "name"),
        (5, setting(name="or\ng"), "name"),
        (6, setting(id=0), "id"),
        (6, setting(spec={}), "spec"),
        (6, setting(spec=spec_to_wire(a_spec(3, cpu_milli=2**31))), "spec"),
        (6, setting(spec=spec_to_wire(a_spec(3, duration_ms=2**62))), "spec"),
        (6, setting(spec=spec_to_wire(a_spec(3, precedence=2**31))), "spec"),
        (6, setting(spec=spec_to_wire(a_spec(3, name="a\u202eb"))), "spec"),
        (6, setting(spec=spec_to_wire(a_spec(100_001))), "spec"),
        (6, setting(state="dreaming"), "state"),
        (6, setting(state="parked"), "park_reason"),
        (6, setting(state="running"), "unplaced"),
        (6, setting(state="succeeded"), "finished_ms"),
        (6, setting(unplaced=[[1, 4]]), "unplaced"),
        (6, setting(unplaced=[[2, 3], [0, 1]]), "unplaced"),
        (7, setting(id=4), "id"),
        (8, setting(job=[4, 5]), "job"),
        (8, setting(job=[4, 9]), "task"),
        (8, setting(machine=[1, 4]), "machine"),
        (8, setting(task=[0, 0]), "task"),
        (8, setting(task=[0, 1]), "task"),
        (8, setting(task=[0, 3]), "task"),
        (8, setting(started_ms=[1]), "started_ms"),
        (9, setting(task=[1]), "task"),
        (9, setting(job=[], task=[], machine=[], started_ms=[], ended_ms=[], cause=[]), "job"),
        (9, setting(cause=["\x07"]), "cause"),
        (10, setting(rule="first"), "rule"),
        (10, setting(kind="a\x1b[2J"), "kind"),
        (11, setting(replica="a\u200bb"), "replica"),
        (11, setting(facts=[1]), "facts"),
    ],
)
def test_a_line_that_cannot_be_is_told_with_its_number_and_field(
    path: Path, number: int, edit: Edit, field: str
) -> None:
    told = refusal(write_lines(path, with_line(number, edit)))

    assert (str(path), number, field) == (told.file, told.line, told.field)


@pytest.mark.parametrize(
    ("number", "edit", "said"),
    [
        (4, setting(parent="gone"), "was not set as a tenant"),
        (5, setting(parent="ann"), "ancestor"),
    ],
)
def test_tenants_that_make_no_tree_are_refused(
    path: Path, number: int, edit: Edit, said: str
) -> None:
    told = refusal(write_lines(path, with_line(number, edit)))

    assert (str(path), "parent") == (told.file, told.field)
    assert said in told.sentence


def test_machines_that_hold_more_than_they_have_are_refused(path: Path) -> None:
    write_lines(path, with_line(8, setting(amounts={"cpu_milli": [1_000, 5_000]})))

    assert "the tasks on 'machine-3' hold more than it has" == refusal(path).sentence


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (lambda ok: [], "it is cut off: the last line is missing"),
        (lambda ok: ok[:-1], "it is cut off: the last line is missing"),
        (lambda ok: [*ok, ok[-1]], "there is something after the last line"),
        (lambda ok: ok[1:], "it is no file that omega snapshot wrote"),
        (lambda ok: [ok[0], *ok], "a line 'cell' must not come after 'cell'"),
        (lambda ok: [*ok[:7], ok[2], *ok[7:]], "a line 'quota' must not come after 'job'"),
        (lambda ok: [*ok[:2], *ok[3:]], "it has 10 lines before the last, not 11"),
        (lambda ok: [ok[0], b'{"line": "else"}\n'], "`line` is none of cell, machines"),
        (lambda ok: [ok[0], b"[" * 100_000 + b"\n"], "Invalid JSON: "),
        (lambda ok: [ok[0], b'{"line":"cell",' * 9], "Invalid JSON: "),
        (lambda ok: [b"\x00\xff\xfe"], "Invalid JSON: "),
        (lambda ok: [b"name,cpu_milli\n"], "Invalid JSON: "),
        (lambda ok: [b" " * (LINE_BYTES_MAX + 1)], "longer than 4,194,304 bytes"),
        (lambda ok: [gzip.compress(b"".join(ok))[:-9]], "it is cut off, or was changed"),
        (lambda ok: [b"\x1f\x8b" + b"0" * 99], "it is cut off, or was changed"),
        (lambda ok: [gzip.compress(b" " * 2**25)], "longer than 4,194,304 bytes"),
    ],
)
def test_a_file_that_is_another_or_broken_is_told_in_a_sentence(
    path: Path, broken: Callable[[list[bytes]], list[bytes]], said: str
) -> None:
    told = refusal(write_lines(path, broken(lines(CELL))))

    assert told.sentence.startswith(said)
    assert str(path) == told.file


def test_a_file_that_cannot_be_opened_is_told(path: Path) -> None:
    assert "it cannot be read: No such file or directory" == refusal(path).sentence
    assert "it cannot be read: Is a directory" == refusal(path.parent).sentence
    assert "it cannot be read: no file can have this name" == refusal(Path("a\0b")).sentence


def test_a_file_that_cannot_be_written_is_told_and_leaves_nothing(path: Path) -> None:
    with pytest.raises(BadInput, match="it cannot be written: "):
        write_cell(CELL, path.parent / "missing" / "cell")

    assert [] == list(path.parent.iterdir())


def test_a_value_that_no_file_may_have_is_told(path: Path) -> None:
    with pytest.raises(BadInput, match="attempts: the cell has a value that no file may have"):
        write_cell(a_saved_cell(jobs=(a_saved_job(1, attempts=-1),)), path)

    assert [] == list(path.parent.iterdir())


def test_the_time_that_was_saved_ends_with_the_last_thing_that_happened() -> None:
    assert a_saved_cell(schedulers=(a_scheduler(last_s=30),)).until_ms == CELL.begin_ms + 30_000
    assert CELL.until_ms == CELL.taken_ms, "a scheduler was at work"
    assert a_saved_cell(schedulers=()).until_ms == CELL.begin_ms
    late = past((9, 0, 2, 1, 50))
    jobs = (a_saved_job(9, state=State.SUCCEEDED),)
    assert a_saved_cell(jobs=jobs, past=late, schedulers=()).until_ms == CELL.begin_ms + 50_000


def test_whatever_the_database_takes_as_a_name_is_saved(path: Path) -> None:
    """Machines have longer names than jobs, and Python knows more unprintable characters."""
    machines = some_machines(1)
    renamed = replace(machines, machines=replace(machines.machines, names=("m" * 400,)))
    job = a_saved_job(1, a_spec(name="a\u00a0b\ue000"), state=State.PENDING, unplaced=((0, 1),))
    write_cell(a_saved_cell(machines=renamed, jobs=(job,)), path)

    again = read_cell(path)
    assert ("m" * 400,) == again.machines.machines.names
    assert "a\u00a0b\ue000" == again.jobs[0].spec.name


def test_machines_of_very_many_attributes_fill_more_lines(path: Path) -> None:
    machines = some_machines(1_000)
    attributes = {f"a{n}": ["v" * 200] * 1_000 for n in range(30)}
    many = replace(machines, machines=replace(machines.machines, attributes=attributes))
    write_cell(a_saved_cell(machines=many), path)

    assert attributes == read_cell(path).machines.machines.attributes


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="it is there, and no file"):
        write_cell(CELL, tmp_path)


def test_what_could_not_be_read_again_is_not_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omega.store.saved.reading.REPORT_BYTES_MAX", 10)
    with pytest.raises(BadInput, match="longer than 10 bytes"):
        write_cell(CELL, path)

    assert [] == list(path.parent.iterdir())


def test_attributes_are_bounded_by_machines_and_names(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines(path, lines(CELL))
    monkeypatch.setattr("omega.store.saved.collecting.ATTRIBUTES_MAX", 2)

    assert ("attributes", 2) == (refusal(path).field, refusal(path).line)


def test_tasks_that_wait_are_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_lines(path, lines(CELL))
    monkeypatch.setattr("omega.store.saved.collecting.TASKS_MAX", 3)

    assert ("spec", 6) == (refusal(path).field, refusal(path).line)


@pytest.mark.parametrize(
    ("number", "edit", "field"),
    [
        (11, setting(facts={"a": "x" * 4 * LIMITS.facts_bytes_max}), "facts"),
        (6, lambda line: line["spec"].update(more="x" * 2 * LIMITS.wire_bytes_max), "spec"),
        (1, setting(taken_ms=2**43), "taken_ms"),
    ],
)
def test_parts_that_no_database_has_are_refused(
    path: Path, number: int, edit: Edit, field: str
) -> None:
    problem = refusal(write_lines(path, with_line(number, edit)))

    assert field in (problem.field or "")
    assert number == problem.line
