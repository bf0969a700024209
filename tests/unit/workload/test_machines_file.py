"""Lists of machines that a person writes."""

from pathlib import Path

import pytest

from omega.errors import BadInput
from omega.model.resources import machine_capacity
from omega.workload.machines_file import read_machines

CSV = """\
name, cpu_milli, memory_mib, disk_mib, gpus, zone, ssd
a, 4000, 16384, 100, 2, z1, yes
b, 8000, 32768, , , z2,
"""
YAML = """\
- name: a
  cpu_milli: 4000
  memory_mib: 16384
  disk_mib: 100
  gpus: 2
  attributes: {zone: z1, ssd: yes}
- name: b
  cpu_milli: 8000
  memory_mib: 32768
  attributes: {zone: z2}
"""


def written(folder: Path, text: str, suffix: str = ".csv") -> Path:
    path = folder / f"machines{suffix}"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_csv_file_has_a_row_a_machine(tmp_path: Path) -> None:
    machines = read_machines(written(tmp_path, CSV))

    assert ("a", "b") == machines.names
    assert machine_capacity(4_000, 16_384, 100, 2).tolist() == machines.capacity[0].tolist()
    assert machine_capacity(8_000, 32_768).tolist() == machines.capacity[1].tolist()
    assert {"zone": ["z1", "z2"], "ssd": ["yes", None]} == machines.attributes


def test_yaml_says_the_same(tmp_path: Path) -> None:
    machines = read_machines(written(tmp_path, YAML, ".yaml"))

    assert ("a", "b") == machines.names
    assert [4_000, 8_000] == machines.capacity[:, 0].tolist()
    assert ["z1", "z2"] == list(machines.attributes["zone"])


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        ("name,cpu_milli,memory_mib,count\nm,1000,1024,3\n", ".csv"),
        ("[{name: m, cpu_milli: 1000, memory_mib: 1024, count: 3}]", ".yml"),
    ],
)
def test_one_line_may_stand_for_many(tmp_path: Path, text: str, suffix: str) -> None:
    machines = read_machines(written(tmp_path, text, suffix))

    assert ("m-1", "m-2", "m-3") == machines.names
    assert [1_000] * 3 == machines.capacity[:, 0].tolist()


@pytest.mark.parametrize(
    ("text", "line", "field", "says"),
    [
        ("name,cpu_milli\na,1\n", 1, None, "no column memory_mib"),
        ("name,cpu_milli,memory_mib\n", None, None, "no machine"),
        ("name,cpu_milli,memory_mib\na,1,x\n", 2, "memory_mib", "whole number from 0"),
        ("name,cpu_milli,memory_mib\na,1,1\nb,,1\n", 3, "cpu_milli", "is missing"),
        ("name,cpu_milli,memory_mib\na,1,1,1\n", 2, None, "row has 4 values, the header has 3"),
        ("name,cpu_milli,memory_mib\na,1\n", 2, None, "row has 2 values, the header has 3"),
        ("name,cpu_milli,memory_mib\na,1,1\na,1,1\n", 3, "name", "machine on line 2"),
        ("name,cpu_milli,memory_mib\n,1,1\n", 2, "name", "is missing"),
        ("name,cpu_milli,memory_mib,gpus\na,1,1,9\n", 2, "gpus", "from 0 to 8, not '9'"),
        ("name,cpu_milli,memory_mib,count\na,1,1,0\n", 2, "count", "from 1 to"),
        (f"name,cpu_milli,memory_mib\n{'x' * 201},1,1\n", 2, "name", "longer than 200"),
        ("name,cpu_milli,memory_mib,cpu_milli\na,1,1,2\n", 1, None, "'cpu_milli' is there twice"),
        ("name,cpu_milli,memory_mib,zone,zone\na,1,1,2,3\n", 1, None, "'zone' is there twice"),
        ('name,cpu_milli,memory_mib\n"a\nb",1,1\n', 3, "name", "cannot be printed"),
        ("name,cpu_milli,memory_mib\na\x00b,1,1\n", 2, "name", "cannot be printed"),
        ("name,cpu_milli,memory_mib\na\x1b[2Jb,1,1\n", 2, "name", "cannot be printed"),
        ("name,cpu_milli,memory_mib\na\uffa0b,1,1\n", 2, "name", "cannot be printed"),
        ("name,cpu_milli,memory_mib,zone\na,1,1,\u1160\n", 2, "'zone'", "cannot be printed"),
        ("name,cpu_milli,memory_mib,zone\na,1,1,z\x07\n", 2, "'zone'", "cannot be printed"),
        ("name,cpu_milli,memory_mib,z\x07\na,1,1,1\n", 2, "'z\\x07'", "cannot be printed"),
        (f"name,cpu_milli,memory_mib,zone\na,1,1,{'z' * 201}\n", 2, "'zone'", "longer than 200"),
        ('name,cpu_milli,memory_mib\n"a,1,1\n', 2, None, "not CSV"),
        (f"name,cpu_milli,memory_mib\n{'a' * 200_000},1,1\n", 2, None, "longer than 131,072"),
        ("name,cpu_milli,memory_mib" + "," * 200_000, 1, None, "longer than 131,072 characters"),
        ('name,cpu_milli,memory_mib\n"' + "\n" * 200_000, 3, None, "longer than 131,072"),
        ('name,cpu_milli,memory_mib\n"a\n' + '","\n' * 50_000, 32_770, None, "longer than 131,072"),
        ('name,cpu_milli,memory_mib\n"a\n\n\nb",1,1\n', 5, "name", "cannot be printed"),
        ("\r\r\nname,cpu_milli\n", 3, None, "no column memory_mib"),
        ("name,cpu_milli,memory_mib\n\n\r\n\ra,1,x\n", 5, "memory_mib", "whole number"),
        ("name,cpu_milli,memory_mib\ra,1,1\r\rb,1,x\r", 4, "memory_mib", "whole number"),
        (f"name,cpu_milli,memory_mib\na,1,{'1' * 5_000}\n", 2, "memory_mib", "whole number"),
    ],
)
def test_a_malformed_row_names_its_line_and_field(
    tmp_path: Path, text: str, line: int | None, field: str | None, says: str
) -> None:
    path = written(tmp_path, text)

    with pytest.raises(BadInput) as refusal:
        read_machines(path)

    assert (str(path), line, field) == (
        refusal.value.file,
        refusal.value.line,
        refusal.value.field,
    )
    assert says in refusal.value.sentence


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("name: a", 1, "a list of machines"),
        ("- a", 1, "mapping of keys"),
        ("\n- name: a\n  cpu_mili: 1", 3, "did you mean 'cpu_milli'"),
        ('- name: a\n  "a\\nb": 1', 2, "no such key"),
        ("- name: a\n  cpu_milli: 1\n  memory_mib: 1.5", 1, "whole number"),
        (
            "- name: a\n  cpu_milli: 1\n  memory_mib: 1\n  attributes: 3",
            4,
            "must map names to single values",
        ),
        ("- name: [", 1, "not YAML"),
        ("- name: null\n  cpu_milli: 1\n  memory_mib: 1", 1, "is missing"),
        ("- name: [a]\n  cpu_milli: 1\n  memory_mib: 1", 1, "is no name"),
        ("- name: true\n  cpu_milli: 1\n  memory_mib: 1", 1, "is no name"),
        ('- name: "a\\nb"\n  cpu_milli: 1\n  memory_mib: 1', 1, "cannot be printed"),
        ("\n- name: a\u3164b\n  cpu_milli: 1\n  memory_mib: 1", 2, "cannot be printed"),
        ("- name: a\n  cpu_milli: [1]\n  memory_mib: 1", 1, "whole number"),
        ("- name: a\n  cpu_milli: no\n  memory_mib: 1", 1, "whole number"),
        ("- name: a\n  cpu_milli: yes\n  memory_mib: 1", 1, "whole number"),
        ("- name: a\n  cpu_milli: null\n  memory_mib: 1", 1, "whole number"),
        ("- name: a\n  cpu_milli: 1\n  memory_mib: 1\n  gpus: false", 1, "whole number"),
        (
            '- name: a\n  cpu_milli: 1\n  memory_mib: 1\n  attributes: {zone: "a\\u0000"}',
            1,
            "cannot be printed",
        ),
    ],
)
def test_malformed_yaml_names_its_line(
    tmp_path: Path, text: str, line: int | None, says: str
) -> None:
    path = written(tmp_path, text, ".yaml")

    with pytest.raises(BadInput) as refusal:
        read_machines(path)

    assert (str(path), line) == (refusal.value.file, refusal.value.line)
    assert says in refusal.value.sentence


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"absent\.csv: cannot be read: No such file"):
        read_machines(tmp_path / "absent.csv")
    with pytest.raises(BadInput, match=r"a \.csv or a \.yaml file"):
        read_machines(tmp_path / "machines.txt")
    (tmp_path / "latin.csv").write_bytes(b"name\xe9")
    with pytest.raises(BadInput, match="not UTF-8"):
        read_machines(tmp_path / "latin.csv")


@pytest.mark.parametrize(("text", "suffix"), [(CSV, ".csv"), (YAML, ".yaml")])
def test_the_mark_with_which_windows_begins_a_file_is_passed_over(
    tmp_path: Path, text: str, suffix: str
) -> None:
    machines = read_machines(written(tmp_path, "\ufeff" + text.replace("\n", "\r\n"), suffix))

    assert ("a", "b") == machines.names
    assert ["z1", "z2"] == list(machines.attributes["zone"])


@pytest.mark.parametrize(
    ("text", "suffix", "line", "says"),
    [
        (
            "name,cpu_milli,memory_mib,"
            + ",".join(f"a{n}" for n in range(257))
            + "\nm,1,1"
            + ",x" * 257,
            ".csv",
            2,
            "more than 256 attributes",
        ),
        (
            "".join(
                f"- {{name: m{n}, cpu_milli: 1, memory_mib: 1, attributes: {{a{n}: x}}}}\n"
                for n in range(1_000)
            ),
            ".yaml",
            257,
            "more than 256 attributes",
        ),
        (
            "name,cpu_milli,memory_mib,count,"
            + ",".join(f"a{n}" for n in range(201))
            + "\nm,1,1,100000"
            + ",x" * 201,
            ".csv",
            2,
            "more than 20,000,000 values of attributes",
        ),
        (
            "name,cpu_milli,memory_mib,count,"
            + ",".join(f"a{n}" for n in range(201))
            + "\na,1,1,1"
            + ",x" * 201
            + "\nb,1,1,100000"
            + "," * 201,
            ".csv",
            3,
            "more than 20,000,000 values of attributes",
        ),
        (
            "name,cpu_milli,memory_mib,count\n" + "".join(f"m{n},1,1,100000\n" for n in range(100)),
            ".csv",
            12,
            "more than 1,000,000 machines",
        ),
    ],
    ids=["columns", "names", "values", "empty values", "machines"],
)
def test_a_short_file_that_would_fill_the_memory_is_refused(
    tmp_path: Path, text: str, suffix: str, line: int, says: str
) -> None:
    with pytest.raises(BadInput, match=says) as refusal:
        read_machines(written(tmp_path, text, suffix))

    assert line == refusal.value.line


def test_a_row_without_an_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    """The first row that is too long is told, not what stands after it."""
    path = written(tmp_path, 'name,cpu_milli,memory_mib\n"' + "\n\n,x" * 100_000 + "\n\x00")

    with pytest.raises(BadInput, match="a row is longer than 131,072 characters") as refusal:
        read_machines(path)

    assert refusal.value.line is not None
    assert refusal.value.line < 100_000


def test_machines_alike_share_their_attributes_and_others_have_none(tmp_path: Path) -> None:
    text = """\
name,cpu_milli,memory_mib,gpus,count,zone,ssd
a,1,2,1,2,z1,
b,3,4,,,,yes
c,5,6,8,2,z2,no
"""

    machines = read_machines(written(tmp_path, text))

    assert ("a-1", "a-2", "b", "c-1", "c-2") == machines.names
    assert {
        "zone": ["z1", "z1", None, "z2", "z2"],
        "ssd": [None, None, "yes", "no", "no"],
    } == machines.attributes
    assert [
        machine_capacity(1, 2, 0, 1).tolist(),
        machine_capacity(1, 2, 0, 1).tolist(),
        machine_capacity(3, 4).tolist(),
        machine_capacity(5, 6, 0, 8).tolist(),
        machine_capacity(5, 6, 0, 8).tolist(),
    ] == machines.capacity.tolist()


def test_a_file_without_an_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "endless.csv").symlink_to("/dev/zero")

    with pytest.raises(BadInput, match="longer than"):
        read_machines(tmp_path / "endless.csv")
