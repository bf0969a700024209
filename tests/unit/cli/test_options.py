"""Options that several verbs have."""

import pytest

from omega.cli.options import ReplicaSet, read_replica_sets, read_turn, replicas_of
from omega.errors import BadInput
from omega.model.claims import ConflictRule
from omega.sync.choice import Sync
from omega.terminal.options import number_option, read_pairs


def test_crews_are_kinds_with_numbers() -> None:
    replica_sets = read_replica_sets("batch=2, service=1,ml-gpu")

    assert (
        ReplicaSet("batch", 2),
        ReplicaSet("service", 1),
        ReplicaSet("ml-gpu", 1),
    ) == replica_sets


def test_a_crew_may_name_its_rule() -> None:
    fit, sequence = read_replica_sets("batch:fit=2,batch:sequence=1")

    assert ReplicaSet("batch", 2, ConflictRule.FIT) == fit
    assert ReplicaSet("batch", 1, ConflictRule.SEQUENCE) == sequence


def test_a_crew_is_written_as_it_is_read() -> None:
    replica_sets = read_replica_sets("batch=2,batch:sequence=1")

    assert replica_sets == read_replica_sets(",".join(map(str, replica_sets)))


def test_replicas_of_a_kind_have_names_of_their_own() -> None:
    replicas = list(
        replicas_of(read_replica_sets("batch=2,batch:fit=1,batch:sequence=2,service=1"))
    )

    assert ["0", "1", "fit0", "seq0", "seq1", "0"] == [name for _, name in replicas]
    assert len(replicas) == len({(replica_set.kind, name) for replica_set, name in replicas})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("batch=x", "'batch=x' does not read as"),
        ("=2", "'=2' does not read as"),
        ("batch=-1", "'batch=-1' does not read as"),
        ("batch:late=1", "the rules are fit, sequence"),
        ("batch=0", "at least one scheduler"),
        ("", "at least one scheduler"),
        ("batch=65", "more than 64 schedulers"),
        ("batch=40,service=25", "more than 64 schedulers"),
        ("batch=" + "9" * 5_000, "more than 64 schedulers"),
    ],
)
def test_what_is_no_crew_is_refused(text: str, says: str) -> None:
    with pytest.raises(BadInput, match="field --schedulers") as refusal:
        read_replica_sets(text)

    assert says in str(refusal.value)


def test_an_option_that_is_a_number_says_what_it_takes() -> None:
    """The words are pydantic's; of typer's own bounds, nan is told that it is too large."""
    option = number_option(lowest=0.5, highest=2, metavar="S")

    assert (0.5, 2, "S") == (option.min, option.max, option.metavar)
    assert [0.5, 2.0, 1e0] == [option.parser(text) for text in ("0.5", "2", 1.0)]
    for text, says in (
        ("nan", "a finite number"),
        ("-inf", "a finite number"),
        ("0.4", "greater than or equal to 0.5"),
        ("1e300", "less than or equal to 2"),
        ("{a}", "a valid number"),
    ):
        with pytest.raises(ValueError, match=f"Input should be {says}"):
            option.parser(text)


def test_pairs_are_read_in_order() -> None:
    pairs = read_pairs(["b=2", "a=1=one", "b=3"], option="--where")

    assert [("b", "2"), ("a", "1=one"), ("b", "3")] == pairs


@pytest.mark.parametrize("pair", ["", "zone", "=z1", "zone="])
def test_what_is_no_pair_is_refused(pair: str) -> None:
    with pytest.raises(BadInput, match=r"field --where: .* does not read as NAME=VALUE"):
        read_pairs([pair], option="--where")


def test_a_turn_is_that_of_one_scheduler_of_so_many() -> None:
    assert (1, 4) == read_turn("2/4", Sync.PARTITIONED)
    assert (0, 1) == read_turn("1/1", Sync.PARTITIONED, 3)
    assert (1, 4) == read_turn("2/4", Sync.PARTITIONED, 12)


@pytest.mark.parametrize(
    ("text", "sync"), [(None, Sync.DELTA), (None, Sync.PARTITIONED), ("auto", Sync.PARTITIONED)]
)
def test_a_turn_that_nobody_gives_is_found_by_the_replicas_themselves(
    text: str | None, sync: Sync
) -> None:
    assert read_turn(text, sync) is None


@pytest.mark.parametrize(
    ("text", "sync", "parts", "says"),
    [
        ("2/4", Sync.PARTITIONED, 6, "4 schedulers cannot share out 6 parts evenly"),
        ("2/4", Sync.PARTITIONED, 2, "give a multiple of 4"),
        (None, Sync.DELTA, 2, "only --sync partitioned divides the cell"),
    ],
)
def test_parts_that_cannot_be_shared_out_are_refused(
    text: str | None, sync: Sync, parts: int, says: str
) -> None:
    with pytest.raises(BadInput, match=says) as raised:
        read_turn(text, sync, parts)

    assert "--parts" == raised.value.field


@pytest.mark.parametrize(
    ("text", "sync", "says"),
    [
        ("2/4", Sync.DELTA, "only --sync partitioned goes by turns"),
        ("auto", Sync.FULL, "only --sync partitioned goes by turns"),
        ("Auto", Sync.PARTITIONED, "'Auto' does not read as I/N, such as 2/4, or auto"),
        ("24", Sync.PARTITIONED, "'24' does not read as I/N"),
        ("a/4", Sync.PARTITIONED, "'a/4' does not read as I/N"),
        ("1/", Sync.PARTITIONED, "'1/' does not read as I/N"),
        ("1/99999999999", Sync.PARTITIONED, "does not read as I/N"),
        ("1/0", Sync.PARTITIONED, "no less than one"),
        ("1/1025", Sync.PARTITIONED, "no more than 1024"),
        ("0/4", Sync.PARTITIONED, "not '0/4'"),
        ("5/4", Sync.PARTITIONED, "not '5/4'"),
        (f"{9 * '9'}/4", Sync.PARTITIONED, "of 4 there are the first to the last"),
    ],
)
def test_what_is_no_turn_is_refused(text: str, sync: Sync, says: str) -> None:
    with pytest.raises(BadInput, match=says) as raised:
        read_turn(text, sync)

    assert "--turn" == raised.value.field
