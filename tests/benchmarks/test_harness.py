"""What all benchmarks share: their list, their options, their arithmetic."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.environment import ROOT, processor_model, revision_of
from benchmarks.options import numbers, words
from benchmarks.ratios import milliseconds, paired
from benchmarks.workers import CONTENTIONS, HOT_MACHINES, Order, Slice, alternate
from omega.errors import BadInput
from tests.benchmarks.conftest import PNG


def test_the_list_names_each_and_says_what_it_measures(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["list"])

    said = capsys.readouterr().out
    assert 0 == end.value.code
    assert all(name in said for name in BENCHMARKS)
    assert all((command.__doc__ or "").split()[0] in said for command in BENCHMARKS.values())


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["commit", "--claims", "1,many"], "does not read as numbers"),
        (["commit", "--clients", "0"], "not in 1 to"),
        (["commit", "--contention", "warm"], "'warm' is none of disjoint, uniform, hot"),
        (["commit", "--smoke", "--plot", "/nowhere/at/all.png"], "there is no folder"),
        (["commit", "--smoke", "--plot", "x.txt"], "x.txt ends in none of .png, .svg, .pdf"),
        (["commit", "--smoke", "--seconds", "nan"], "field --seconds: it should be a finite"),
    ],
)
def test_bad_usage_is_one_sentence_and_exit_code_2(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", *arguments])

    assert 2 == end.value.code
    assert problem in " ".join(capsys.readouterr().err.split())


def test_what_a_run_came_to_is_shown_and_drawn_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATA_DIR", str(tmp_path))
    told, first, again = (tmp_path / name for name in ("told.json", "first.png", "again.png"))
    with pytest.raises(SystemExit) as ran:
        main(["run", "placement", "--smoke", "--json", str(told), "--plot", str(first)])
    said = capsys.readouterr().out
    with pytest.raises(SystemExit) as shown:
        main(["show", str(told), "--plot", str(again)])

    assert (0, 0) == (ran.value.code, shown.value.code)
    assert said == capsys.readouterr().out
    assert first.read_bytes().startswith(PNG)
    assert first.read_bytes() == again.read_bytes()


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "[]",
        "{}",
        '{"benchmark": "commit", "parameters": {}, "rows": [], "summary": {"finding": ""}}',
        '{"benchmark": "nothing", "parameters": {}, "rows": [], "summary": {"finding": ""}}',
    ],
)
def test_what_no_benchmark_wrote_is_not_shown(
    text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = tmp_path / "told.json"
    if text is not None:
        told.write_text(text)
    with pytest.raises(SystemExit) as end:
        main(["show", str(told)])

    assert 2 == end.value.code
    assert "FILE: " in capsys.readouterr().err


def test_numbers_are_read_once_each_in_order() -> None:
    assert (10, 1, 1_000) == numbers("10, 1,1000,10", option="--claims", most=1_000)
    for bad in ("", "1,,2", "1.5", "-1", "1001", "9" * 5_000):
        with pytest.raises(BadInput):
            numbers(bad, option="--claims", most=1_000)


def test_words_are_of_those_known() -> None:
    assert ("hot", "disjoint") == words(
        "hot,disjoint,hot", option="--contention", known=CONTENTIONS
    )
    with pytest.raises(BadInput):
        words("", option="--contention", known=CONTENTIONS)


def test_ratios_are_of_pairs_and_pass_over_what_never_got_anywhere() -> None:
    ratio = paired([10.0, 30.0, 40.0, 7.0], [10.0, 10.0, 20.0, 0.0])

    assert ratio is not None
    assert {"median": 2.0, "lower": 1.0, "upper": 3.0} == ratio.rounded()
    assert paired([1.0], [0.0]) is None


def test_the_interval_of_a_ratio_is_that_of_its_median() -> None:
    """The tables of the sign test say ranks 8 and 18 of 25, and 1 and 5 of 5."""
    many, few = (
        paired([float(n) for n in np.random.default_rng(0).permutation(number) + 1], [1.0] * number)
        for number in (25, 5)
    )

    assert many is not None
    assert few is not None
    assert (13.0, 8.0, 18.0) == (many.median, many.lower, many.upper)
    assert (3.0, 1.0, 5.0) == (few.median, few.lower, few.upper)


def test_times_are_told_in_milliseconds() -> None:
    assert {"p50_ms": 2.0, "p99_ms": 2.98} == milliseconds([0.001, 0.002, 0.003])


@pytest.mark.parametrize("clients", [1, 2, 3, 8])
def test_disjoint_clients_share_out_all_machines(clients: int) -> None:
    order = Order(variant="raw", clients=clients, claims=1, contention="disjoint")
    spans = [order.machines(client, 100) for client in range(clients)]

    machines = [m for first, last in spans for m in range(first, last + 1)]
    assert list(range(1, 101)) == machines


def test_hot_machines_are_few_and_the_same_for_all() -> None:
    order = Order(variant="raw", clients=4, claims=1, contention="hot")

    assert {(1, HOT_MACHINES)} == {order.machines(client, 100) for client in range(4)}
    assert (1, 3) == order.machines(0, 3)


def test_a_slice_adds_up_what_its_clients_did_each_in_its_own_time() -> None:
    answers = [
        {
            "elapsed_s": 0.5,
            "verdicts": {"accepted": 10, "stale": 1},
            "repeats": {},
            "latencies_s": [0.1],
        },
        {
            "elapsed_s": 2.0,
            "verdicts": {"accepted": 10},
            "repeats": {"x": 2},
            "latencies_s": [0.2, 0.3],
        },
    ]

    both = Slice.of(answers)

    assert (25.0, 3, 20) == (both.claims_per_s, both.transactions, both.granted)
    assert Counter({"accepted": 20, "stale": 1}) == both.verdicts
    assert Counter({"x": 2}) == both.repeats
    assert [0.1, 0.2, 0.3] == both.latencies_s.tolist()


def test_ways_alternate_in_an_order_that_changes() -> None:
    nothing = Slice(0.0, 0, Counter(), Counter(), np.zeros(0))
    ways = {name: lambda: nothing for name in "abc"}
    order = [name for name, _ in alternate(ways, 20, np.random.default_rng(1))]
    rounds = [tuple(order[i : i + 3]) for i in range(0, 60, 3)]

    assert all({"a", "b", "c"} == set(one) for one in rounds)
    assert len(set(rounds)) > 3


def test_a_folder_that_is_no_checkout_has_no_revision(tmp_path: Path) -> None:
    assert revision_of(tmp_path) is None
    assert (ROOT / "benchmarks").is_dir()
    assert processor_model() is None or processor_model()
