"""Whatever comes in from outside is a value or BadInput; whatever goes out comes back."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.model.elastic import Phase, Workers, problem_with_phases
from omega.model.jobs import Constraint, JobSpec, Operator, Preference, StepWork, TaskGroup
from omega.model.resources import DEVICES_MAX, GPU_SLICES
from omega.model.wire import spec_from_wire, spec_to_wire
from omega.workload.quantities import cpu_milli, disk_mib, duration_ms, gpus_and_slices, memory_mib
from omega.workload.spec import GroupSpec, parse_specs
from tests.fixtures.doses import examples
from tests.fixtures.programs import PROGRAMS
from tests.property.refusals import returns_or_bad_input

AMOUNT = st.integers(0, LIMITS.amount_max)
NAMES = st.text(min_size=1, max_size=20)

CONSTRAINTS = st.one_of(
    st.builds(
        Constraint,
        NAMES,
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.lists(NAMES, min_size=1, max_size=3).map(tuple),
    ),
    st.builds(Constraint, NAMES, st.sampled_from([Operator.EXISTS, Operator.MISSING])),
)


WORKS = st.builds(StepWork, NAMES, st.integers(1, LIMITS.steps_max))


@st.composite
def groups(draw: st.DrawFn, *, end: bool, programs: bool = True) -> TaskGroup:
    gpus = draw(st.integers(0, DEVICES_MAX))
    lasts_ms = draw(st.none() | st.integers(0, 2**50)) if end else None
    preferences = tuple(
        draw(st.lists(st.builds(Preference, CONSTRAINTS, st.integers(1, 100)), max_size=2))
    )
    return TaskGroup(
        tasks=draw(st.integers(1, 1_000)),
        cpu_milli=draw(AMOUNT),
        memory_mib=draw(AMOUNT),
        disk_mib=draw(AMOUNT),
        gpus=gpus,
        gpu_slices=draw(st.integers(1, GPU_SLICES)) if gpus <= 1 else GPU_SLICES,
        duration_ms=lasts_ms,
        constraints=tuple(draw(st.lists(CONSTRAINTS, max_size=3))),
        spread_over=draw(st.none() | NAMES),
        different_machines=draw(st.booleans()),
        preferences=preferences,
        patience_ms=draw(st.integers(0, 2**40)) if preferences else 0,
        program=draw(st.none() | PROGRAMS) if programs and lasts_ms is None else None,
    )


JOB_KEYS = (
    *("name", "scheduler", "tenant", "precedence", "minimum", "groups", "work"),
    *("preemptible", "workers"),
)

PHASES = st.builds(
    Phase,
    name=st.sampled_from(["map", "reduce", "third"]),
    activities=st.integers(1, LIMITS.activities_max),
    duration_ms=st.integers(1, LIMITS.duration_ms_max),
    after=st.none() | st.sampled_from(["map", "reduce"]),
)


@st.composite
def elastic_specs(draw: st.DrawFn) -> JobSpec:
    phases = tuple(draw(st.lists(PHASES, max_size=2)))
    if problem_with_phases(phases) is not None:
        phases = phases[:0]
    group = draw(groups(end=not phases, programs=not phases))
    group = replace(group, spread_over=None, different_machines=False)
    at_most = draw(st.integers(group.tasks, LIMITS.tasks_per_job_max))
    return replace(
        draw(specs()), groups=(group,), minimum=0, work=None, workers=Workers(at_most, phases)
    )


@st.composite
def specs(draw: st.DrawFn) -> JobSpec:
    work = draw(st.none() | WORKS)
    parts = tuple(draw(st.lists(groups(end=work is None), min_size=1, max_size=3)))
    return JobSpec(
        name=draw(NAMES),
        scheduler=draw(NAMES),
        groups=parts,
        tenant=draw(NAMES),
        precedence=draw(st.integers(-(2**31), 2**31)),
        minimum=draw(st.integers(0, sum(part.tasks for part in parts))),
        work=work,
        preemptible=draw(st.booleans()),
    )


@given(specs() | elastic_specs())
def test_a_job_survives_the_wire(spec: JobSpec) -> None:
    assert spec == spec_from_wire(json.loads(json.dumps(spec_to_wire(spec))))


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(
        st.sampled_from(JOB_KEYS),
        PLAIN,
    )
)
def test_any_json_from_the_wire_is_a_job_or_bad_input(wire: dict[str, object]) -> None:
    returns_or_bad_input(lambda: spec_from_wire(wire))


@examples(300)
@given(specs().map(spec_to_wire), st.data())
def test_a_job_changed_on_the_wire_is_read_as_it_stands_or_bad_input(
    wire: dict[str, object], data: st.DataObject
) -> None:
    """A value of another type, let through, would end every scheduler that meets it."""
    changed = data.draw(st.sampled_from(list(places(wire))))
    bent = with_other(wire, changed, data.draw(PLAIN))

    with suppress(BadInput):
        assert json.dumps(bent) == json.dumps(spec_to_wire(spec_from_wire(bent)))
        assert well_typed(spec_from_wire(bent))


def places(value: object) -> Iterator[tuple[str | int, ...]]:
    """Yield where there is something, however deep."""
    yield ()
    inside: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    for key, part in inside:
        yield from ((key, *rest) for rest in places(part))


def with_other(value: Any, place: tuple[str | int, ...], other: object) -> Any:  # noqa: ANN401
    """Return a copy in which something else stands in one place."""
    if not place:
        return other
    copy = value.copy()
    copy[place[0]] = with_other(value[place[0]], place[1:], other)
    return copy


def well_typed(spec: JobSpec) -> bool:
    return all(
        group.spread_over is None or isinstance(group.spread_over, str) for group in spec.groups
    ) and all(
        isinstance(text, str)
        for group in spec.groups
        for constraint in group.constraints
        for text in (constraint.attribute, *constraint.values)
    )


@given(st.text() | st.binary())
@example("a: !!int 0x")
@example("{a, b: [c, ? d]}")
@example("? ? ?")
@example("<<: [*a]")
def test_any_text_is_a_spec_or_bad_input(text: str | bytes) -> None:
    returns_or_bad_input(lambda: parse_specs(text, "jobs.yaml"))


@examples(300)
@given(st.text(alphabet="ab:-[]{}&*!|>%@`'\"#?,<=~\\\n\t 019.xU", max_size=60))
def test_anything_that_looks_like_yaml_is_a_spec_or_bad_input(text: str) -> None:
    returns_or_bad_input(lambda: parse_specs(text, "jobs.yaml"))


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.sampled_from(["all", "4GiB", "500m", "1.5", "10m", "zone in a|b", "ssd exists", "x in"])
)


def part(fields: tuple[str, ...], values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.dictionaries(st.sampled_from(fields) | st.text(max_size=5), values, max_size=8)


CONSTRAINT_LIKE = SCALARS | part(("attribute", "operator", "values"), SCALARS | st.lists(SCALARS))
GROUP_LIKE = part(
    tuple(GroupSpec.model_fields),
    SCALARS
    | st.lists(CONSTRAINT_LIKE, max_size=3)
    | part(("signal", "grace", "attempts", "within", "delay"), SCALARS),
)
JOB_LIKE = part(
    JOB_KEYS,
    SCALARS | st.lists(GROUP_LIKE | SCALARS, max_size=3) | part(("model", "steps"), SCALARS),
)


@examples(300)
@given(JOB_LIKE | st.lists(JOB_LIKE, max_size=2) | PLAIN)
def test_anything_that_looks_like_a_spec_is_one_or_bad_input(value: object) -> None:
    text = yaml.safe_dump(value, allow_unicode=True)

    returns_or_bad_input(lambda: parse_specs(text, "jobs.yaml"))


@given(
    st.sampled_from([cpu_milli, memory_mib, disk_mib, gpus_and_slices, duration_ms]),
    SCALARS | PLAIN,
)
def test_any_value_is_an_amount_or_a_value_error(
    read: Callable[[object], object], value: object
) -> None:
    with suppress(ValueError):
        amount = read(value)

        assert amount is None or isinstance(amount, int | tuple)
