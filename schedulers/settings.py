"""Settings of schedulers, as an operator writes them: `--set NAME=VALUE`.

Goal     Read the settings of all schedulers in one way, most of them from a model that lists them.
Promise  A name that is not there, or a value that cannot be used, is BadInput, naming the setting.
Source   pydantic, which parses values from text.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from omega.errors import BadInput, did_you_mean
from omega.placement.alternates import ALTERNATES_MAX

_Settings = TypeVar("_Settings", bound=BaseModel)
_FLAGS: Final = {"true": True, "false": False}


def _flag(value: object) -> bool:
    """Return a flag: pydantic would take `yes`, `on` and `1` as well."""
    if isinstance(value, bool):
        return value
    if value not in _FLAGS:
        raise ValueError("it is true or false")
    return _FLAGS[str(value)]


class AlternatesSettings(BaseModel):
    """The setting of a scheduler that may name alternates."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    alternates: Annotated[int, Field(ge=0, le=ALTERNATES_MAX)] = 0
    """On how many other machines a claim is tried if its own refuses it."""


class BatchSettings(AlternatesSettings):
    """The settings of the batch scheduler."""

    preempts: Annotated[bool, BeforeValidator(_flag)] = False
    """Whether lower precedences make way."""


class ServiceSettings(AlternatesSettings):
    """The settings of the service scheduler."""


def refuse_unknown(said: Iterable[str], known: Sequence[str]) -> None:
    """Raise BadInput for the first name that is not known."""
    for name in said:
        if name not in known:
            hint, listed = did_you_mean(name, known), ", ".join(known)
            raise BadInput(f"there is no setting {name!r}{hint} (known: {listed})", field="--set")


def read_settings(model: type[_Settings], said: Mapping[str, str]) -> _Settings:
    """Return the settings; raise BadInput for an unknown name or a value that is not allowed."""
    refuse_unknown(said, tuple(model.model_fields))
    try:
        return model.model_validate(dict(said))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        name = str(problem["loc"][0])
        raise BadInput(f"{said[name]!r} will not do: {problem['msg']}", field=name) from None
