"""What a rehearsal says would be granted is granted: the store that is asked next agrees."""

from uuid import uuid4

from hypothesis import given

from omega.framework.rehearsal import rehearse
from omega.model.arrays import every_kind
from omega.store.planned import PlannedJob
from schedulers.service import ServiceScheduler
from tests.fixtures.doses import examples
from tests.fixtures.small_cells import Example, cells, spec_of, store_of


@examples(1_000)
@given(cells())
def test_what_is_rehearsed_is_committed_to_the_letter(case: Example) -> None:
    store, _ = store_of(case)
    spec = spec_of(case)

    found = rehearse(store, ServiceScheduler(), spec, run_seed=1)

    assert [] == store.jobs(scheduler="service")
    if not len(found.claims):
        assert () == found.evicted
        return
    assert len(found.claims) >= spec.minimum
    outcome = store.submit_planned(PlannedJob(uuid4(), spec, found.claims, found.evicted))
    assert outcome.job is not None, outcome.verdicts
    rows = store.snapshot().rows
    assert every_kind(rows.free == found.view.free).all()
    assert [use.left for use in store.quotas()] == [then.left for _, then in found.quotas]
    assert [] == list(store.verify())
