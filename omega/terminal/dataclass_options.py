"""Options as the fields of a dataclass.

Goal     Let several verbs, and the code behind them, pass many options as one value.
Promise  Each field becomes an option with its annotation and its default. The verb may have further
         options of its own.
Source   typer, which reads a function's signature.
"""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, get_type_hints


def takes(plan: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a function of a plan: typer sees the plan's fields as options, before its own.

    The function takes the plan as its first argument, and all others by name.
    """
    kinds = get_type_hints(plan, include_extras=True)
    options = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=kinds[field.name],
        )
        for field in fields(plan)
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
        parameters = [*options, *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own)]

        def verb(**said: Any) -> None:  # noqa: ANN401 - whatever typer has read
            planned: dict[str, Any] = {option.name: said.pop(option.name) for option in options}
            command(plan(**planned), **said)

        verb.__name__, verb.__doc__ = command.__name__, command.__doc__
        verb.__annotations__ = {one.name: one.annotation for one in parameters}
        vars(verb)["__signature__"] = inspect.Signature(parameters)
        return verb

    return decorate
