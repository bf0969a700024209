"""Rates of running gangs by Gavel's tables, for nodes that make steps.

Goal     Let nodes run jobs at the rates that policies plan by.
Promise  What the table does not have is a rate of 0.
Source   Gavel (OSDI 2020), section 6; docs/decisions/0027-jobs-in-steps.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from omega.framework.rates import Gang
from schedulers.ml_gpu.throughputs import Throughputs, read_throughputs


@dataclass(frozen=True, eq=False)
class TableRates:
    """A table of rates by model, gang size and GPU type."""

    table: Throughputs
    gpu_attribute: str = "gpu_model"
    """Of machines: what tells GPU types apart."""

    @property
    def attributes(self) -> Sequence[str]:
        """The attribute that names a machine's type of GPU."""
        return (self.gpu_attribute,)

    def steps_per_s(self, gang: Gang) -> float:
        """Return the rate of the slowest type, for a gang steps together; 0 if it is not known.

        A gang on more machines than it takes is spread.
        """
        types = [machine.attributes.get(self.gpu_attribute) for machine in gang.machines]
        known_types = [type_ for type_ in dict.fromkeys(types) if type_ is not None]
        if None in types:
            return 0.0
        known = self.table.of(known_types, [(gang.kind, gang.gpus)])
        takes = -(-gang.gpus // max([1, *(machine.gpus for machine in gang.machines)]))
        rates = known.spread if len(types) > takes else known.rates
        return float(rates.min())


def read_rates(path: Path, *, gpu_attribute: str) -> TableRates:
    """Read a table in the layout of Gavel's."""
    return TableRates(read_throughputs(path), gpu_attribute)
