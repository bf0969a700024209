"""Calls of the functions in Postgres that no program of ours makes.

Any function that the catalogue lists can be called with values of its parameters' types. Those that
take apart what they are given (claims, jobs, machines) are also called with arguments that are
right but for one or two: these get further.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from omega.model.jobs import StepWork
from omega.model.pipelines import TokenRate, pipeline_to_wire
from omega.model.resources import KINDS
from omega.model.wire import spec_to_wire
from omega.store.postgres.roles import OWNERS, ROLES
from omega.testing.builders import a_spec
from omega.testing.pipeline_contract import DIAMOND, a_pipeline
from tests.postgres.hostile_values import ELEMENTS, PLAIN, Array, Json, in_line, literal, values

PARAMETERS = """
    SELECT p.proname, p.proargnames[1 : p.pronargs],
           ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) AS t)
      FROM pg_proc p
     WHERE p.pronamespace = 'omega'::regnamespace AND p.prokind IN ('f', 'p')
     ORDER BY p.proname
"""

OUTER = frozenset(OWNERS).union(*(role.calls for role in ROLES))
"""What somebody calls; the others, some of which write what they are told, are not for roles."""


@dataclass(frozen=True)
class Function:
    """A function as the catalogue lists it."""

    name: str
    parameters: Mapping[str, str]
    """Each one's type."""


@dataclass(frozen=True)
class Call:
    """A call, as a failing example shows it."""

    function: Function
    arguments: Mapping[str, Any]

    @property
    def statement(self) -> str:
        """The call in SQL; what it answers is text, whatever it is."""
        types = self.function.parameters
        given = ", ".join(f"{name} => %s::text::{types[name]}" for name in self.arguments)
        return f"SELECT omega.{self.function.name}({given})::text"

    @property
    def literals(self) -> list[str | None]:
        """The arguments of the statement."""
        return [literal(value) for value in self.arguments.values()]


def calls(function: Function) -> st.SearchStrategy[Call]:
    """Draw calls of a function."""
    arguments = _any_arguments(function)
    if function.name in NEARLY_RIGHT:
        arguments |= NEARLY_RIGHT[function.name].flatmap(lambda right: _bent(function, right))
    return arguments.map(lambda drawn: Call(function, drawn))


@st.composite
def _any_arguments(draw: st.DrawFn, function: Function) -> dict[str, Any]:
    """Draw values of the right types; arrays mostly of one length, with what goes together."""
    rows = draw(st.lists(st.integers(0, 9), max_size=3))
    return {
        name: in_line(of, rows)
        if of.endswith("[]") and draw(st.sampled_from([True, True, False]))
        else draw(values(of))
        for name, of in function.parameters.items()
    }


@st.composite
def _bent(draw: st.DrawFn, function: Function, right: Mapping[str, Any]) -> dict[str, Any]:
    """Make one or two arguments wrong."""
    assert function.parameters.keys() == right.keys(), "the parameters have changed"
    names = st.lists(st.sampled_from(list(right)), max_size=2, unique=True)
    return {
        **right,
        **{
            name: _bend(draw, function.parameters[name], right[name])
            for name in sorted(draw(names))
        },
    }


def _bend(draw: st.DrawFn, of: str, value: Any) -> Any:  # noqa: ANN401 - whatever SQL has
    if isinstance(value, Json):
        return Json(_bent_inside(draw, value.value))
    if not isinstance(value, Array) or not value.elements or draw(st.booleans()):
        return draw(values(of))
    elements = list(value.elements)
    at = draw(st.integers(0, len(elements) - 1))
    match draw(st.sampled_from(["other", "null", "gone", "twice", "shifted", "nested"])):
        case "other":
            elements[at] = draw(ELEMENTS[of.removesuffix("[]")])
        case "null":
            elements[at] = None
        case "gone":
            del elements[at]
        case "twice":
            elements.insert(at, elements[at])
        case "shifted":
            return Array(tuple(elements), draw(st.sampled_from([-1, 0, 2])))
        case _:
            return Array((Array(tuple(elements)),))
    return Array(tuple(elements))


def _bent_inside(draw: st.DrawFn, value: Any) -> Any:  # noqa: ANN401 - whatever JSON has
    """Change something, however deep it is."""
    inside: Sequence[Any] = []
    if isinstance(value, dict):
        inside = sorted(value)
    elif isinstance(value, list):
        inside = range(len(value))
    if not inside or draw(st.integers(0, 5)) == 0:
        return draw(PLAIN)
    at = draw(st.sampled_from(inside))
    changed = dict(value) if isinstance(value, dict) else list(value)
    if draw(st.integers(0, 5)) == 0:
        del changed[at]
    else:
        changed[at] = _bent_inside(draw, changed[at])
    return changed


SIZES = st.integers(0, 2)


@st.composite
def _transactions(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the arguments of a commit that any scheduler might make."""
    jobs = draw(st.lists(st.sampled_from([2, 7, 9, 1, 4, 99]), min_size=1, max_size=3, unique=True))
    sizes = [draw(SIZES) for _ in jobs]
    claims, shapes = sum(sizes), draw(st.integers(1, 2))

    def each(count: int, strategy: st.SearchStrategy[Any]) -> Array:
        return Array(tuple(draw(strategy) for _ in range(count)))

    amounts = st.sampled_from([0, 0, 0, 1, 500])
    others, evictions = (sorted(draw(SIZES) for _ in range(n)) for n in (draw(SIZES), draw(SIZES)))
    others = [at + 1 for at in others if at < claims]
    evictions = [at + 1 for at in evictions if at < claims]
    return {
        "_id": UUID(int=draw(st.integers(0, 9))),
        "_scheduler": "batch",
        "_replica": "0",
        "_by_sequence": draw(st.booleans()),
        "_jobs": Array(tuple(jobs)),
        "_tokens": in_line("uuid[]", jobs),
        "_grants_min": each(len(jobs), SIZES),
        "_ends": Array(tuple(accumulate(sizes))),
        "_tasks": each(claims, st.integers(0, 3)),
        "_machines": each(claims, st.integers(1, 6)),
        "_seen": each(claims, st.integers(0, 3)),
        "_shapes": each(claims, st.integers(1, shapes)),
        "_amounts": each(shapes * KINDS, amounts),
        "_other_claims": Array(tuple(others)),
        "_other_machines": each(len(others), st.integers(1, 6)),
        "_other_seen": each(len(others), st.integers(0, 3)),
        "_other_shapes": each(len(others), st.integers(1, shapes)),
        "_evict_claims": Array(tuple(evictions)),
        "_evict_jobs": each(len(evictions), st.sampled_from([2, 4, 8])),
        "_evict_tasks": each(len(evictions), st.integers(0, 1)),
    }


WIRE = {
    "_specs": Json(
        [
            spec_to_wire(
                a_spec(2, minimum=1, name="sly", gpus=1, gpu_slices=500, spread_over="zone")
            ),
            {
                **spec_to_wire(a_spec(1, name="plain", duration_ms=5)),
                "groups": [
                    {
                        **spec_to_wire(a_spec(1))["groups"][0],  # type: ignore[index]
                        "constraints": [
                            {"attribute": "zone", "operator": "in", "values": ["z1", "z2"]}
                        ],
                    }
                ],
            },
            spec_to_wire(a_spec(2, name="learner", gpus=1, work=StepWork("a", 9))),
        ]
    )
}
PIPELINES = {
    "_specs": Json(
        [
            pipeline_to_wire(a_pipeline(DIAMOND)),
            pipeline_to_wire(a_pipeline(name="b", tokens=TokenRate(1, 1_000))),
        ]
    )
}
CELL = {
    "_generation": 1,
    "_names": Array(("new-1", "new-2")),
    "_amounts": Array((1_000, 1_000, *[0] * (KINDS - 2)) * 2),
    "_catalogue": Json({"names": ["zone", "rack"], "values": [["z1", "z2", "z3"], ["r1"]]}),
    "_codes": Array((1, 0, 3, 1)),
}
SIZE = {
    "_machine": 1,
    "_capacity": Array((500, 500, *[0] * (KINDS - 2))),
    "_notice_ms": 1_000,
}

STARTED_MS = 1_577_836_800_000
"""When the tasks of a store under load began."""
EXITS = {
    "_jobs": Array((4, 8)),
    "_tasks": Array((0, 0)),
    "_started_ms": Array((STARTED_MS, STARTED_MS)),
    "_causes": Array(("exited", "lost")),
    "_codes": Array((3, -1)),
    "_signals": Array((0, 9)),
    "_restarts": Array((0, 1)),
    "_details": Array(("", "gone")),
}
OUTPUTS = {
    "_jobs": Array((4, 4)),
    "_tasks": Array((0, 0)),
    "_started_ms": Array((STARTED_MS, STARTED_MS)),
    "_streams": Array(("stdout", "stderr")),
    "_bytes_total": Array((1, 0)),
    "_tails": Array(("x", "")),
}
HELD = {"_machine": 1, "_holder": UUID(int=1), "_lease_ms": 0}
LEFT = {"_machine": 1, "_holder": UUID(int=1)}

NEARLY_RIGHT: dict[str, st.SearchStrategy[Mapping[str, Any]]] = {
    "commit_claims": _transactions(),
    "submit_jobs": st.just(WIRE),
    "submit_pipelines": st.just(PIPELINES),
    "add_machines": st.just(CELL),
    "resize_machine": st.just(SIZE),
    "report_exits": st.just(EXITS),
    "report_outputs": st.just(OUTPUTS),
    "hold_machine": st.just(HELD),
    "leave_machine": st.just(LEFT),
    "free_machine": st.just(LEFT),
}
"""By function, arguments that are right."""
