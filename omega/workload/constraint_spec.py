"""Constraints and preferences as users write them, as a text or as a mapping.

Goal     Let a user write `zone in a|b`.
Promise  Anything else than a constraint is a ValueError that shows one.
Source   docs/guide/jobs.md.
"""

import re
from typing import Annotated, Literal

from pydantic import Field, model_validator

from omega.limits import LIMITS
from omega.model.jobs import Constraint, Operator
from omega.workload.quantities import shown
from omega.workload.spec_parts import Name, Part, at_most

_CONSTRAINT = re.compile(r"(\S+)\s+(in|not in|not_in|exists|missing)(?:\s+(.*))?", re.DOTALL)
_CONSTRAINT_EXAMPLE = "write for example 'zone in a|b', 'zone not in c' or 'ssd exists'"


class ConstraintSpec(Part):
    """A condition on an attribute of the machine."""

    attribute: Name
    operator: Literal["in", "not_in", "exists", "missing"]
    values: Annotated[list[Name], at_most(LIMITS.values_per_constraint_max)] = Field(
        default_factory=list
    )

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        match = _CONSTRAINT.fullmatch(value.strip())
        if match is None:
            raise ValueError(f"{shown(value)} is not a constraint; {_CONSTRAINT_EXAMPLE}")
        limit = LIMITS.values_per_constraint_max
        if match[3] and match[3].count("|") >= limit:
            raise ValueError(f"it must hold no more than {limit} values")
        values = [part.strip() for part in match[3].split("|")] if match[3] else []
        return {
            "attribute": match[1],
            "operator": match[2].replace(" ", "_"),
            "values": values,
        }

    @model_validator(mode="after")
    def _values_where_compared(self) -> "ConstraintSpec":
        if bool(self.values) != (self.operator in ("in", "not_in")):
            raise ValueError(
                f"in and not_in take values, exists and missing none; {_CONSTRAINT_EXAMPLE}"
            )
        return self


class PreferenceSpec(ConstraintSpec):
    """A condition that a task may do without."""

    weight: Annotated[int, Field(ge=1, le=LIMITS.preference_weight_max)] = 1


def constraint_of(said: ConstraintSpec) -> Constraint:
    """Return the constraint that is said, each value once."""
    return Constraint(said.attribute, Operator(said.operator), tuple(dict.fromkeys(said.values)))
