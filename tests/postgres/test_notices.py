"""A machine that shrinks: what holds even for one who asks out of turn."""

from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_spec
from omega.testing.machine_contract import cores
from omega.testing.steps import LONG_MS, a_running_job, add_a_cell, places


def test_a_machine_whose_notice_goes_on_is_left_alone_by_name_as_well(store: PostgresStore) -> None:
    """As when the notice was renewed after somebody had found it over."""
    (machine,) = add_a_cell(store, 1)
    a_running_job(store, a_spec(3), [machine] * 3)
    store.resize(machine, cores(1), notice_ms=LONG_MS)

    ended = store._link.call("SELECT omega.enforce_notice(%s)", (machine,))  # noqa: SLF001

    assert [(0,)] == ended
    assert 3 == len(places(store))
