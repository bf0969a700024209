"""The service scheduler."""

from collections import Counter

import numpy as np
import pytest

from omega.errors import BadInput
from omega.testing.builders import a_cell, a_group, a_job, a_spec, a_view, join_cells
from schedulers.service import ServiceScheduler


def test_tasks_are_spread_over_failure_domains() -> None:
    view = a_view(a_cell(6, attributes={"rack": ["a", "a", "a", "a", "b", "c"]}))
    job = a_job(6, spread_over="rack")
    claims = ServiceScheduler().place(view, job, np.random.default_rng(1))

    racks = Counter(view.catalogue.value(0, code) for code in view.codes[claims.machine - 1, 0])
    assert {"a": 2, "b": 2, "c": 2} == racks


def test_a_gang_is_spread_as_well() -> None:
    view = a_view(a_cell(4, attributes={"rack": ["a", "a", "b", "b"]}))
    groups = [a_group(4, spread_over="rack"), a_group(2, spread_over="rack")]
    job = a_job(spec=a_spec(groups=groups, minimum=6))
    claims = ServiceScheduler().place(view, job, np.random.default_rng(1))

    assert [2, 2] == [int((claims.machine[:4] // 3 == rack).sum()) for rack in (0, 1)]
    assert 6 == len(claims)


def test_without_a_domain_the_fullest_machine_takes_it() -> None:
    view = a_view(a_cell(3), used={2: {"cpu_milli": 2_000}})
    claims = ServiceScheduler().place(view, a_job(2), np.random.default_rng(1))

    assert [2, 2] == claims.machine.tolist()


def test_machines_with_free_gpus_are_left_to_others() -> None:
    view = a_view(join_cells(a_cell(2, gpus=4), a_cell(1, first=3)))
    claims = ServiceScheduler().place(view, a_job(3), np.random.default_rng(1))

    assert [3, 3, 3] == claims.machine.tolist()


def test_an_alternate_is_the_next_best_machine_of_its_failure_domain() -> None:
    view = a_view(
        a_cell(6, attributes={"rack": ["a", "b"] * 3}),
        used={1: {"cpu_milli": 3_000}, 2: {"cpu_milli": 3_000}, 5: {"cpu_milli": 1_000}},
    )
    scheduler = ServiceScheduler.configured({"alternates": "1"})
    claims = scheduler.place(view, a_job(2, spread_over="rack"), np.random.default_rng(1))

    assert {1, 2} == {*claims.machine.tolist()}
    others = dict(zip(claims.machine.tolist(), claims.alternates.machine.tolist(), strict=True))
    assert 5 == others[1]
    assert others[2] in {4, 6}


def test_a_setting_that_it_does_not_have_is_refused() -> None:
    with pytest.raises(BadInput, match=r"no setting 'preempts' [(]known: alternates[)]"):
        ServiceScheduler.configured({"preempts": "true"})
