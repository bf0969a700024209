"""Requests to language models, from a published trace: when they came, and how many tokens.

Goal     Pipelines whose arrivals and sizes are of real use.
Promise  A file is read whole, or refused with its line and field. The trace has no durations: those
         that make pipelines of it are ours.
Source   Azure/AzurePublicDataset, AzureLLMInferenceTrace (2023-11-16), CC-BY 4.0; Patel et al.,
         Splitwise (ISCA 2024).
"""

import csv
import gzip
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from omega.errors import BadInput
from omega.model.arrays import Score, integers

FIELDS: Final = ("arrival_s", "context_tokens", "generated_tokens")
TOKENS_MAX: Final = 10**7
SECONDS_MAX: Final = 1e7


@dataclass(frozen=True, eq=False)
class Requests:
    """The requests to one service, in the order of their arrival."""

    arrival_s: Score
    context: Score
    """Tokens that were read ..."""
    generated: Score
    """... and written."""

    def window(self, first: int, count: int) -> "Requests":
        """Return so many requests from the given one on; after the last comes the first."""
        at = (first + np.arange(count)) % len(self.arrival_s)
        rounds = (first + np.arange(count)) // len(self.arrival_s)
        whole_s = self.arrival_s[-1] + self.arrival_s[-1] / len(self.arrival_s)
        times = self.arrival_s[at] + rounds * whole_s
        return Requests(times - times[0], self.context[at], self.generated[at])


def read_requests(folder: Path, service: str) -> Requests:
    """Return the requests to a service. Raises BadInput."""
    path = folder / f"{service}.csv.gz"
    columns: list[tuple[float, int, int]] = []
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            columns = [_request(row, path, line) for line, row in enumerate(reader, start=2)]
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"it cannot be read: {error}", file=str(path)) from None
    if not columns:
        raise BadInput("there is no request in it", file=str(path))
    columns.sort()
    arrival_s, context, generated = zip(*columns, strict=True)
    return Requests(
        np.array(arrival_s), integers(context).astype(float), integers(generated).astype(float)
    )


def _request(row: dict[str, str | None], path: Path, line: int) -> tuple[float, int, int]:
    read: list[float] = []
    for field in FIELDS:
        said = row.get(field) or ""
        most = SECONDS_MAX if field == FIELDS[0] else TOKENS_MAX
        try:
            number = float(said[:40])
        except ValueError:
            number = math.nan
        if not 0 <= number <= most:
            raise BadInput(
                f"{said[:40]!r} is no number from 0 to {most:g}",
                file=str(path),
                line=line,
                field=field,
            )
        read.append(number)
    return read[0], max(1, int(read[1])), max(1, int(read[2]))
