"""What the parts of a job's file have in common.

Goal     Refuse what no part may hold: unknown fields, lists too long, names that nobody can read.
Promise  A validator raises ValueError with one sentence. Nothing in a list that is too long is
         looked at.
Source   docs/guide/jobs.md.
"""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, model_validator

from omega.limits import LIMITS
from omega.model.names import is_printable_name


def readable_name(text: str) -> str:
    """Return a name that a person can read; raise ValueError for any other."""
    return readable(text, LIMITS.name_length_max)


def readable(text: str, length_max: int) -> str:
    """Return a text of at most so many characters that a person can read, or raise ValueError."""
    if not text.strip():
        raise ValueError("it must not be empty")
    if len(text) > length_max:
        raise ValueError(f"it is longer than {length_max} characters")
    if not is_printable_name(text):
        raise ValueError("it holds characters that cannot be printed")
    return text


def at_most(limit: int) -> BeforeValidator:
    """Return a validator that refuses what is too long before what it holds is validated."""

    def check(value: object) -> object:
        if isinstance(value, list | dict) and len(value) > limit:
            raise ValueError(f"it must hold no more than {limit}")
        return value

    return BeforeValidator(check)


Name = Annotated[str, AfterValidator(readable_name)]


class Part(BaseModel):
    """A mapping of fields."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _has_few_fields(cls, value: object) -> object:
        # pydantic makes an error for each unknown field: half a million would fill the memory.
        known = list(cls.model_fields)
        if isinstance(value, dict) and len(value) > 2 * len(known):
            raise ValueError(f"it has {len(value)} fields; there are only {', '.join(known)}")
        return value
