"""Tables of rates."""

import json
from pathlib import Path

import pytest

from omega.errors import BadInput
from schedulers.ml_gpu.throughputs import read_throughputs


def test_rates_alone_beside_another_and_spread(samples: Path) -> None:
    table = read_throughputs(samples / "gavel" / "simulation_throughputs.json")
    a, b, c = table.rows([("A", 1), ("B", 1), ("C", 1)])

    assert ("k80", "v100") == table.types
    assert [10, 40] == table.rates[a].tolist()
    assert [8, 0] == table.pairs.of[a, b].tolist()
    assert [3, 0] == table.pairs.of[b, a].tolist()
    assert [0, 60] == table.pairs.of[c, a].tolist()
    assert [10, 20] == table.spread[a].tolist()
    assert [50, 100] == table.spread[c].tolist()
    assert [1, 1, 1] == table.gangs.tolist()


def test_a_table_is_cut_to_the_types_and_kinds_of_a_problem(samples: Path) -> None:
    table = read_throughputs(samples / "gavel" / "simulation_throughputs.json")
    cut = table.of(["v100", "a100"], [("C", 1), ("Z", 8), ("A", 1)])

    assert [[100, 0], [0, 0], [40, 0]] == cut.rates.tolist()
    assert [60, 0] == cut.pairs.of[0, 2].tolist()
    assert not cut.pairs.of[1].any()
    assert [1, 8, 1] == cut.gangs.tolist()


def test_a_pair_that_stops_one_of_the_two_does_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "rates.json"
    beside = {"('A', 1)": {"null": 2.0, "('B', 1)": [1.0, 0.0]}, "('B', 1)": {"null": 2.0}}
    path.write_text(json.dumps({"k80": beside}))

    assert not read_throughputs(path).pairs.of.any()


def test_a_kind_that_is_not_there_is_named(samples: Path) -> None:
    table = read_throughputs(samples / "gavel" / "simulation_throughputs.json")

    with pytest.raises(BadInput, match="no rates are known of Z on 2 GPUs"):
        table.rows([("Z", 2)])


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("[]", "no table"),
        ('{"k80": 3}', "no table"),
        ("{", "no JSON"),
        ('{"k80": {"ResNet": {"null": 1}}}', "field ResNet: a kind of job is written"),
        ('{"k80": {"(\'A\', 0)": {"null": 1}}}', "a kind of job is written"),
        ('{"k80": {"(\'A\', 1)": {"null": -1}}}', "-1 is not a rate"),
        ('{"k80": {"(\'A\', 1)": {"null": "fast"}}}', "'fast' is not a rate"),
        ('{"k80": {"(\'A\', 1)": {"(\'A\', 1)": 3}}}', "None is not a rate"),
        (f'{{"k80": {{"(\'A\', 1)": {{"null": {10**400}}}}}}}', "... is not a rate"),
        ('{"k80": {"(\'A\', 1)": {"null": 5e-324}}}', "5e-324 is not a rate"),
        (f'{{"k80": {{"(\'A\', {10**30})": {{"null": 1}}}}}}', "a kind of job is written"),
        ('{"k80": {"(\'A\', True)": {"null": 1}}}', "a kind of job is written"),
        (f'{{"k80": {{"{"-" * 20_000}1": {{"null": 1}}}}}}', "a kind of job is written"),
        (f'{{"k80": {{"{"1+" * 30_000}1": {{"null": 1}}}}}}', "a kind of job is written"),
        (
            '{"k80": {"(\'A\', 1)": {}, "(\'A\',1)": {}}}',
            "('A',1): this kind of job is there twice",
        ),
        ('{"k80": {"(\'A\', 1)": 3}}', "k80.('A', 1): it is not a mapping"),
    ],
)
def test_a_malformed_table_is_refused(tmp_path: Path, document: str, words: str) -> None:
    path = tmp_path / "rates.json"
    path.write_text(document)

    with pytest.raises(BadInput) as refused:
        read_throughputs(path)

    assert words in str(refused.value)


def test_a_file_without_an_end_is_refused() -> None:
    with pytest.raises(BadInput, match="longer than"):
        read_throughputs(Path("/dev/zero"))
