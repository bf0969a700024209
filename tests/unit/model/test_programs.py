"""Programs that cannot be run as they are written are not made, nor read from the wire."""

import json
from collections.abc import Mapping

import pytest

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.model.elastic import Phase, Workers
from omega.model.jobs import JobSpec, TaskGroup
from omega.model.programs import Program
from omega.model.wire import spec_from_wire, spec_to_wire
from tests.fixtures.programs import bent_programs

SPEC = JobSpec(
    name="report",
    scheduler="batch",
    groups=(TaskGroup(tasks=1, program=Program(command=("true",))),),
)


def test_a_group_of_an_earlier_version_has_no_program() -> None:
    wire = json.loads(json.dumps(spec_to_wire(SPEC)))
    del wire["groups"][0]["program"]

    assert spec_from_wire(wire).groups[0].program is None


@pytest.mark.parametrize("bent", bent_programs())
def test_what_is_no_program_is_refused(bent: object) -> None:
    wire = json.loads(json.dumps(spec_to_wire(SPEC)))
    wire["groups"][0]["program"] = bent

    with pytest.raises(BadInput, match="not the wire form"):
        spec_from_wire(wire)


def test_a_program_beside_a_duration_or_phases_is_refused() -> None:
    wire = json.loads(json.dumps(spec_to_wire(SPEC)))
    wire["groups"][0]["duration_ms"] = 7

    with pytest.raises(BadInput, match="a program's end ends its task"):
        spec_from_wire(wire)
    with pytest.raises(AssertionError):
        JobSpec(
            name="a", scheduler="b", groups=SPEC.groups, workers=Workers(2, (Phase("a", 1, 1),))
        )
    assert JobSpec(name="a", scheduler="b", groups=SPEC.groups, workers=Workers(2)).workers


def test_env_is_written_as_an_object() -> None:
    program = Program(command=("a",), env=(("A", "1"), ("B", "2")))
    wire = spec_to_wire(
        JobSpec(name="a", scheduler="b", groups=(TaskGroup(tasks=1, program=program),))
    )

    (group,) = json.loads(json.dumps(wire))["groups"]
    assert isinstance(group, Mapping)
    assert {"A": "1", "B": "2"} == group["program"]["env"]
    assert LIMITS.variables_max >= len(program.env)
