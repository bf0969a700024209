"""Schedulers by name."""

from importlib.metadata import EntryPoint

import pytest

from omega.errors import BadInput, SettingsError, UnknownScheduler
from omega.framework import kinds
from omega.framework.kinds import registered
from omega.framework.registry import configured, find_scheduler
from omega.model.lanes import QueueOrder
from schedulers.batch import BatchScheduler
from tests.contract.stranger import RoomiestScheduler


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    """Return the entry points that the registry finds; a test may add to them."""
    found = [
        EntryPoint(name, value, kinds.ENTRY_POINT_GROUP)
        for name, value in (
            ("batch", "schedulers.batch:BatchScheduler"),
            ("service", "schedulers.service:ServiceScheduler"),
            ("roomiest", "tests.contract.stranger:RoomiestScheduler"),
        )
    ]
    monkeypatch.setattr(kinds, "kind_entries", lambda: list(found))
    return found


def add(entries: list[EntryPoint], name: str, value: str) -> None:
    entries.append(EntryPoint(name, value, kinds.ENTRY_POINT_GROUP))


@pytest.mark.usefixtures("entries")
def test_ours_and_a_strangers_are_found_alike() -> None:
    assert BatchScheduler is find_scheduler("batch")
    assert RoomiestScheduler is find_scheduler("roomiest")


@pytest.mark.usefixtures("entries")
def test_all_are_listed_with_their_origin() -> None:
    listed = {kind.kind: kind.origin for kind in registered()}

    assert ["batch", "roomiest", "service"] == list(listed)
    assert "schedulers.batch:BatchScheduler" == listed["batch"]


def test_listing_imports_nothing(entries: list[EntryPoint]) -> None:
    add(entries, "broken", "nowhere.at_all:Scheduler")

    assert "broken" in [kind.kind for kind in registered()]


@pytest.mark.usefixtures("entries")
def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownScheduler, match="did you mean 'batch'") as raised:
        find_scheduler("bacth")

    assert ("batch", "roomiest", "service") == raised.value.known


def test_what_cannot_be_imported_is_told_with_its_error(entries: list[EntryPoint]) -> None:
    add(entries, "broken", "nowhere.at_all:Scheduler")

    with pytest.raises(SettingsError, match=r"'broken'.*cannot be loaded: ModuleNotFoundError"):
        find_scheduler("broken")


def test_what_is_no_scheduler_is_refused(entries: list[EntryPoint]) -> None:
    add(entries, "dict", "builtins:dict")

    with pytest.raises(SettingsError, match="no subclass"):
        find_scheduler("dict")


def test_a_scheduler_under_another_name_is_refused(entries: list[EntryPoint]) -> None:
    add(entries, "other", "schedulers.batch:BatchScheduler")

    with pytest.raises(SettingsError, match="takes jobs of kind 'batch'"):
        find_scheduler("other")


def test_two_that_want_one_name_are_both_named(entries: list[EntryPoint]) -> None:
    add(entries, "batch", "tests.contract.stranger:RoomiestScheduler")

    with pytest.raises(SettingsError, match=r"twice, by schedulers\.batch.* and tests\.contract"):
        find_scheduler("batch")


def test_one_that_is_found_on_two_paths_is_one(entries: list[EntryPoint]) -> None:
    add(entries, "batch", "schedulers.batch:BatchScheduler")

    assert BatchScheduler is find_scheduler("batch")
    assert ["batch", "roomiest", "service"] == [kind.kind for kind in registered()]


@pytest.mark.usefixtures("entries")
@pytest.mark.parametrize("kind", ["batch", "roomiest"])
def test_every_kind_may_lease_in_a_fair_order(kind: str) -> None:
    scheduler = configured(kind, {"order": "choosy"})

    assert isinstance(scheduler, find_scheduler(kind))
    assert QueueOrder.CHOOSY is scheduler.queue_order
    assert configured(kind, {}).queue_order is None


@pytest.mark.usefixtures("entries")
def test_every_kind_that_evicts_nobody_may_reclaim() -> None:
    assert 2.5 == configured("roomiest", {"order": "drf", "reclaim": "2.5"}).reclaim_after_s
    assert 0 == configured("batch", {"reclaim": "0"}).reclaim_after_s
    assert configured("batch", {}).reclaim_after_s is None


@pytest.mark.usefixtures("entries")
@pytest.mark.parametrize(
    ("kind", "settings", "sentence"),
    [
        ("batch", {"reclaim": "soon"}, "'soon' is no number of seconds from 0 to 86,400"),
        ("batch", {"reclaim": "-1"}, "'-1' is no number"),
        ("batch", {"reclaim": "nan"}, "'nan' is no number"),
        ("batch", {"reclaim": "86401"}, "'86401' is no number"),
        ("batch", {"reclaim": "1", "preempts": "true"}, "evicts tasks of all tenants already"),
        ("service", {"reclaim": "1"}, "service evicts tasks of all tenants already"),
    ],
)
def test_a_setting_of_reclaiming_that_has_no_meaning_is_refused(
    kind: str, settings: dict[str, str], sentence: str
) -> None:
    with pytest.raises(BadInput) as refused:
        configured(kind, settings)

    assert "reclaim" == refused.value.field
    assert sentence in refused.value.sentence


@pytest.mark.usefixtures("entries")
def test_an_order_that_is_none_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(BadInput) as refused:
        configured("batch", {"order": "chosy"})

    assert "order" == refused.value.field
    assert "there is no order 'chosy'; did you mean 'choosy'? (fifo, drf, choosy, deadline," in (
        refused.value.sentence
    )
