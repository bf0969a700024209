"""The lines of `omega status` about rounds.

Goal     Show which round it is, by which policy, and the use of GPUs by type, in two lines a kind.
Promise  Drawn from values alone; kinds of scheduler that tell nothing of rounds have no line.
Source   omega.reports.rounds.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.text import Text

from omega.model.round_summary import TypeUse
from omega.reports.printable import short
from omega.reports.rounds import counts, due_in_s
from omega.reports.wording import duration, share
from omega.store.rounds import LastRound

TYPES_SHOWN: Final = 12


def round_lines(rounds: Sequence[LastRound], now_ms: int) -> Iterator[Text]:
    """Yield the lines of each kind of scheduler that plans by rounds."""
    for last in rounds:
        told = last.summary
        if told is None:
            continue
        training, preempted = counts(last)
        waiting = len(told.jobs) - training
        lost = f", {preempted:,} preempted" if preempted else ""
        due_s = due_in_s(last, now_ms)
        when = f"next in {duration(due_s)}" if due_s else "next is due"
        yield Text.assemble(
            ("round  ", "bold"),
            f"{short(last.scheduler)} {last.number:,}, {when} · {short(told.policy)}"
            f" · {training:,} train, {waiting:,} wait{lost}",
        )
        yield Text.assemble(("GPUs   ", "bold"), _use(told.types))


def _use(types: Sequence[TypeUse]) -> str:
    """Return how many GPUs of each type train; a type without a name is that of other machines."""
    shown = [
        f"{short(it.name) or 'other'} {it.used:,} of {it.gpus:,}"
        f" ({share(it.used / it.gpus) if it.gpus else share(None)})"
        for it in types[:TYPES_SHOWN]
    ]
    more = len(types) - TYPES_SHOWN
    return " · ".join(shown) + (f" and {more:,} more" if more > 0 else "")
