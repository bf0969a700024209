"""Elastic jobs as users write them."""

import pytest

from omega.errors import BadInput
from omega.model.elastic import Phase, Workers
from omega.model.jobs import TaskGroup
from omega.workload.spec import parse_specs

SMALL = "name: a\nscheduler: b\ngroups: [{cpu: 1}]\n"
ELASTIC = """\
name: index
scheduler: elastic
workers: {wanted: 11, at_most: 1000}
phases:
  - {name: map, activities: 1000, duration: 10s}
  - {name: reduce, activities: 50, duration: 30s, after: map}
groups: [{cpu: 1}]
"""


def test_an_elastic_job_wants_workers_and_may_have_more() -> None:
    (spec,) = parse_specs(ELASTIC, "jobs.yaml")

    assert (TaskGroup(tasks=11, cpu_milli=1_000),) == spec.groups
    assert spec.workers == Workers(
        1_000, (Phase("map", 1_000, 10_000), Phase("reduce", 50, 30_000, after="map"))
    )


def test_workers_without_phases_work_for_their_own_duration() -> None:
    text = SMALL.replace("cpu: 1", "cpu: 1, duration: 5m") + "workers: {wanted: 2, at_most: 2}\n"

    (spec,) = parse_specs(text, "jobs.yaml")

    assert (2, Workers(2), 300_000) == (spec.tasks, spec.workers, spec.groups[0].duration_ms)


@pytest.mark.parametrize(
    ("before", "after", "line", "field", "said"),
    [
        ("wanted: 11", "wanted: 1001", 3, "workers.at_most", "1000 is less than the 1001 workers"),
        ("wanted: 11", "wanted: 0", 3, "workers.wanted", "0 is less than 1"),
        ("wanted: 11, ", "", 3, "workers.wanted", "this field must be given"),
        ("at_most: 1000", "at_most: 100001", 3, "workers.at_most", "more than 100000"),
        ("at_most", "most", 3, "workers.most", "did you mean 'at_most'"),
        ("after: map", "after: maps", 6, "phases[1].after", "there is no phase 'maps'"),
        ("after: map", "after: reduce", 6, "phases[1].after", "reduce after reduce"),
        ("10s}", "10s, after: reduce}", 5, "phases[0].after", "map after reduce after map"),
        ("name: reduce", "name: map", 6, "phases[1].name", "another phase named 'map'"),
        ("activities: 50", "activities: 0", 6, "phases[1].activities", "0 is less than 1"),
        ("activities: 50", "activities: 1e9", 6, "phases[1].activities", "not a whole number"),
        ("activities: 50", "activities: 1000001", 6, "phases[1].activities", "more than 1000000"),
        ("duration: 30s, ", "", 6, "phases[1].duration", "this field must be given"),
        ("30s", "0s", 6, "phases[1].duration", "'0s' is less than 1"),
        ("groups: [{", "groups: [{cpu: 2}, {", 7, "groups[1]", "one shape, so there is one group"),
        ("{cpu: 1}", "{cpu: 1, tasks: 11}", 7, "groups[0].tasks", "their number is `wanted`"),
        ("{cpu: 1}", "{cpu: 1, spread_over: zone}", 7, "groups[0].spread_over", "run anywhere"),
        ("{cpu: 1}", "{cpu: 1, duration: 5s}", 7, "groups[0].duration", "with the last activity"),
        ("groups:", "work: {kind: a, steps: 1}\ngroups:", 7, "work", "has no workers"),
        ("workers: {wanted: 11, at_most: 1000}\n", "", 3, "phases", "only a job with workers"),
        ("phases:", "phases:\n  - {name: a, activities: 1, duration: 1s}", 4, "phases", "than 2"),
    ],
)
def test_what_is_wrong_with_an_elastic_job_is_told(
    before: str, after: str, line: int, field: str, said: str
) -> None:
    assert before in ELASTIC

    with pytest.raises(BadInput) as caught:
        parse_specs(ELASTIC.replace(before, after, 1), "jobs.yaml")

    assert (line, field) == (caught.value.line, caught.value.field)
    assert said in caught.value.sentence
