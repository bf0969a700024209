"""`omega fairness`: the shares of tenants beside what is fair.

Goal     Show who has less than is fair, and why.
Promise  The verb only reads.
Source   docs/decisions/0058-the-order-of-the-queue.md.
"""

from importlib.util import find_spec
from typing import Final

from omega.cli.cell_access import DemoOption, ReadFrom, cell_reader
from omega.errors import BadInput
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo

NO_EXTRA: Final = "fair shares need an extra: pip install 'omega-scheduler[fairness]'"


def command(
    data_dir: DataDir = None,
    read_from: ReadFrom = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """Compare the shares of tenants with what is fair, and say why they differ.

    The share of a tenant is what its tasks use, of the capacity of the machines that take tasks: of
    whichever resource it is largest. The fair share is what it would have if the smallest share
    were as large as can be, then the next, and so on, by weights and parents (`omega tenant`), with
    the jobs that run and wait now and the machines that they may use.
    """
    if find_spec("scipy") is None:
        raise BadInput(NO_EXTRA)
    from omega.cli.fairness.screens import fairness_screen  # noqa: PLC0415 - it needs the extra
    from omega.reports.fairness import FairnessReport  # noqa: PLC0415 - likewise

    output = Output(json_to)
    with cell_reader(data_dir, read_from, demo=demo, name="omega fairness") as store:
        report = FairnessReport.read(store)
    output.document(parameters={"demo": demo}, rows=report.rows(), summary=report.summary())
    output.console.print(fairness_screen(report))
