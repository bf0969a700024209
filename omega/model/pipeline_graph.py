"""The graph of a pipeline: which stages come after which, and the longest path below each.

Goal     Say in which order stages can run, and refuse those that cannot.
Promise  A PipelineGraph has no cycle and no unknown stage. A critical path is the longest of all
         paths below a stage, not their sum.
Source   Xu et al., Cameo (NSDI 2021).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omega.errors import BadInput, did_you_mean, shortened
from omega.model.acyclic import topological_order


@dataclass(frozen=True)
class Stage:
    """A step of a pipeline; it can start when all stages that it comes after have ended."""

    name: str
    after: tuple[str, ...] = ()


class PipelineGraph:
    """The stages of a pipeline."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        """Raise BadInput for a name that is there twice, an unknown stage, and a cycle."""
        after: dict[str, tuple[str, ...]] = {}
        for stage in stages:
            if stage.name in after:
                raise BadInput(f"stage {_quoted(stage.name)} is there twice", field="name")
            after[stage.name] = stage.after
        for name, others in after.items():
            for other in others:
                if other not in after:
                    raise BadInput(
                        f"stage {_quoted(name)} comes after {_quoted(other)}, which is no stage of"
                        f" its pipeline{did_you_mean(other, after)}",
                        field="after",
                    )
        self.order: tuple[str, ...] = topological_order(
            after,
            field="after",
            itself="stage {} comes after itself",
            by_others="stage {} comes after itself",
        )
        """The names, each after all that it comes after."""
        self._after = after

    def below_ms(self, cost_ms: Mapping[str, int]) -> dict[str, int]:
        """Return for each stage the critical path below it: the longest, without its own cost."""
        below = dict.fromkeys(self.order, 0)
        for name in reversed(self.order):
            for parent in self._after[name]:
                below[parent] = max(below[parent], cost_ms[name] + below[name])
        return below


def _quoted(name: str) -> str:
    return repr(shortened(name))
