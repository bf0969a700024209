"""The order of names of which some come after others, and the sentence that names a cycle.

Goal     Refuse a cycle in one sentence, of tenants and of stages alike.
Promise  Each name comes after all that it is said to come after. Names are shortened in sentences.
Source   graphlib.TopologicalSorter.
"""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

from omega.errors import BadInput, shortened


def topological_order(
    after: Mapping[str, Iterable[str]], *, field: str, itself: str, by_others: str
) -> tuple[str, ...]:
    """Return the names so that each comes after those that `after` lists for it.

    Raises BadInput at `field` if there is a cycle. `itself` and `by_others` are what the sentence
    says of one name, `{}`: if it is listed for itself, and if it is by way of others.
    """
    try:
        return tuple(TopologicalSorter(after).static_order())
    except CycleError as error:
        first, *others, _ = error.args[1]
    name = repr(shortened(first))
    if not others:
        raise BadInput(itself.format(name), field=field)
    by_way_of = shortened(", ".join(repr(other) for other in others))
    raise BadInput(f"{by_others.format(name)}, by way of {by_way_of}", field=field)
