"""Covers: the fewest tasks of one machine that free what is lacking there.

Goal     Evict as few tasks as possible, without a search that keeps a scheduler busy for long.
Promise  The number is the least possible while the budget lasts; after that the first cover that is
         found counts. Of equally many, low ranks are preferred.
Source   docs/decisions/0037-who-makes-way.md.
"""

from dataclasses import dataclass

import numpy as np

from omega.model.arrays import Amounts, Ids


@dataclass(eq=False)
class Budget:
    """How many steps searches may still take together."""

    nodes: int

    @property
    def is_spent(self) -> bool:
        return self.nodes < 0


class Cover:
    """Tasks of one machine, of which the fewest are sought that cover what is lacking.

    Tasks of one shape are interchangeable but for their rank, so only how many of each shape is
    searched.
    """

    def __init__(self, amounts: Amounts, budget: Budget) -> None:
        """`amounts` (tasks, kinds) are in order of rank."""
        self._budget = budget
        shapes, shape = np.unique(amounts, axis=0, return_inverse=True)
        largest_first = np.argsort(-shapes.max(axis=1, initial=0), kind="stable")
        self._shapes = [
            (shapes[which], np.flatnonzero(shape.reshape(-1) == which).tolist())
            for which in largest_first.tolist()
            if shapes[which].any()
        ]

    def fewest(self, lacking: Ids) -> list[int]:
        """Return the positions of the fewest tasks that cover `lacking` (kinds,), ascending.

        Of equally many, low ranks are preferred. All tasks together must cover it.
        """
        found: list[list[int]] = []

        def search(number: int, missing: Ids, chosen: list[int]) -> None:
            self._budget.nodes -= 1
            if found and (len(chosen) > len(found[0]) or self._budget.is_spent):
                return
            if (missing <= 0).all():
                if not found or (len(chosen), sum(chosen)) < (len(found[0]), sum(found[0])):
                    found[:] = [chosen]
                return
            if number == len(self._shapes):
                return
            shape, tasks = self._shapes[number]
            helps = shape > 0
            full = int(np.ceil(np.maximum(missing[helps], 0) / shape[helps]).max())
            for count in range(min(len(tasks), full), -1, -1):
                search(number + 1, missing - count * shape, chosen + tasks[:count])

        search(0, lacking, [])
        (least,) = found
        return sorted(least)
