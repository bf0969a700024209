"""What an operator says of the ML-GPU scheduler: by rounds or not, and how.

Goal     Turn `--set NAME=VALUE` into a scheduler.
Promise  What cannot be used is BadInput, naming the setting.
Source   Gavel (OSDI 2020), section 5; docs/papers/gavel.md, live.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from omega.errors import BadInput
from schedulers.ml_gpu.idle_gangs import Place
from schedulers.ml_gpu.live import GpuRounds, RoundsConfig
from schedulers.ml_gpu.policies.named import find_policy
from schedulers.ml_gpu.throughputs import read_throughputs
from schedulers.settings import refuse_unknown

ROUND_S_MIN: Final = 0.01
ROUND_S_MAX: Final = 366 * 86_400.0
NAME_LENGTH_MAX: Final = 200


class Settings(BaseModel):
    """The settings, as text has them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    round: Annotated[float, Field(gt=0)]
    """Seconds of a round."""
    policy: str = "max_min_fairness_perf"
    resets_after: Annotated[int, Field(ge=1, le=1_000_000)] = 5
    throughputs: Path | None = None
    gpu_attribute: Annotated[
        str, Field(min_length=1, max_length=NAME_LENGTH_MAX), BeforeValidator(str.strip)
    ] = "gpu_model"


def read_settings(said: Mapping[str, str]) -> Settings:
    """Read settings; raise BadInput for one that is not there or cannot be used."""
    refuse_unknown(said, tuple(Settings.model_fields))
    try:
        settings = Settings.model_validate(dict(said))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        name = str(problem["loc"][0])
        if name not in said:
            raise BadInput(
                "only rounds have settings, and their length is missing; say for example"
                " round=360, in seconds",
                field="--set",
            ) from None
        raise BadInput(f"{said[name]!r} will not do: {problem['msg']}", field=name) from None
    return settings


def rounds_of(said: Mapping[str, str], place: Place) -> GpuRounds:
    """Return rounds as an operator wants them; jobs that do not train are placed by `place`."""
    return GpuRounds(rounds_config(read_settings(said)), place)


def rounds_config(settings: Settings) -> RoundsConfig:
    """Return how rounds are to be played.

    Raises BadInput for a policy that is not there or shares GPUs, for a round that is too short
    or too long, and for a table of rates that cannot be read.
    """
    try:
        policy = find_policy(settings.policy)
    except BadInput as error:
        raise BadInput(error.sentence, field="policy") from None
    if policy.shares_gpus or policy.asks_prices or policy.keeps_deadlines or policy.takes_no_gangs:
        wants = "shares GPUs, asks for prices or deadlines, or takes no gangs"
        raise BadInput(f"{policy.name} {wants}: live rounds do not have it", field="policy")
    if not ROUND_S_MIN <= settings.round <= ROUND_S_MAX:
        raise BadInput(f"a round of {settings.round:g} s will not do", field="round")
    table = None if settings.throughputs is None else read_throughputs(settings.throughputs)
    return RoundsConfig(
        policy=policy,
        length_ms=round(settings.round * 1_000),
        resets_after=settings.resets_after,
        table=table,
        attribute=settings.gpu_attribute,
    )
