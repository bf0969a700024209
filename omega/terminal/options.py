"""Options that every command line here may have, declared once.

Goal     Let an option mean the same, and be explained the same, wherever it appears.
Promise  A value that cannot be read is BadInput that names the option, before anything is done.
Source   typer, whose options are annotations; docs/decisions/0009-errors-and-retries.md.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from omega.errors import BadInput

SEED_MAX: Final = 2**63 - 1
"""The largest that fits 64 bits, so that every reader of the document can hold it."""


def number_option(*names: str, lowest: float, highest: float, **how: Any) -> Any:  # noqa: ANN401 - typer's
    """Return an option for a finite number in these bounds.

    typer's own bounds report nan as above the upper bound. The error messages are pydantic's, as
    typer's are.
    """
    bounded = TypeAdapter(Annotated[float, Field(ge=lowest, le=highest, allow_inf_nan=False)])

    def read(text: object) -> float:
        try:
            return bounded.validate_python(text)
        except ValidationError as error:
            (problem,) = error.errors()
            raise PydanticCustomError("number", "{why}", {"why": problem["msg"]}) from None

    return typer.Option(*names, parser=read, min=lowest, max=highest, **how)


DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        help="Where the embedded Postgres keeps the cell; OMEGA_DATABASE_URL: another server.",
    ),
]
JsonTo = Annotated[
    str | None,
    typer.Option(
        "--json", metavar="FILE|-", help="Write the results as one JSON document; - is stdout."
    ),
]
PlotTo = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE.png", help="Draw the results; also .svg and .pdf."),
]
Seed = Annotated[
    int, typer.Option(min=0, max=SEED_MAX, metavar="N", help="Seed of all random draws.")
]


def read_pairs(pairs: Sequence[str], *, option: str) -> list[tuple[str, str]]:
    """Read `NAME=VALUE` pairs, in order. Raises BadInput for other texts."""
    read = []
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals and value):
            raise BadInput(f"{pair!r} does not read as NAME=VALUE", field=option)
        read.append((name, value))
    return read
