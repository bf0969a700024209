"""`omega tenant`: who shares with whom, and in which proportion.

Goal     Let an operator set the weights of tenants, and put tenants together.
Promise  `set` sets a tenant as a whole. A value that cannot be used is refused before anything
         changes. `remove` exits 1 if the tenant was not set.
Source   OwnerStore.set_tenant, remove_tenant and tenants;
         docs/decisions/0058-the-order-of-the-queue.md.
"""

from typing import Annotated

import typer
from rich.table import Table

from omega.cli.cell_access import DemoOption, ReadFrom, cell_reader, cell_store
from omega.cli.job.screens import cut
from omega.errors import BadInput, OmegaError
from omega.limits import LIMITS
from omega.ordering.tenants import Tenant
from omega.reports.printable import short
from omega.reports.wording import UNKNOWN
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo
from omega.workload.spec_parts import readable_name

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The tenant, as jobs name it.")]


@app.command("set")
def set_tenant(
    name: Name,
    weight: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="How many times as much it gets as a tenant of weight 1 with the same parent.",
        ),
    ] = 1,
    parent: Annotated[
        str | None, typer.Option(metavar="NAME", help="The tenant whose share it has a part of.")
    ] = None,
    data_dir: DataDir = None,
    json_to: JsonTo = None,
) -> None:
    """Set the weight and the parent of a tenant.

    They count where schedulers lease in a fair order. A tenant that was never set has weight 1 and
    no parent. A tenant is set as a whole: without --parent it has none, even if it had one.

    [bold]omega tenant set research --weight 2[/]
    [bold]omega tenant set vision --parent research[/]
    """
    output = Output(json_to)
    if not 1 <= weight <= LIMITS.tenant_weight_max:
        raise BadInput(
            f"a weight is from 1 to {LIMITS.tenant_weight_max:,}, not {weight}", field="--weight"
        )
    tenant = Tenant(
        _readable(name, "NAME"), weight, None if parent is None else _readable(parent, "--parent")
    )
    with cell_store(data_dir) as store:
        store.set_tenant(tenant)
    output.document(
        parameters={"name": name, "weight": weight, "parent": parent},
        rows=[_row(tenant)],
        summary={"tenants": 1},
    )
    below = "" if parent is None else f" below {short(parent)}"
    output.console.print(f"Tenant {short(name)} has the weight {weight:,}{below}.", highlight=False)


@app.command("list")
def list_tenants(
    data_dir: DataDir = None,
    read_from: ReadFrom = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """List the tenants that were set; all others have the weight 1 and no parent."""
    output = Output(json_to)
    with cell_reader(data_dir, read_from, demo=demo) as store:
        tenants = store.tenants()
    output.document(
        parameters={"demo": demo},
        rows=[_row(tenant) for tenant in tenants],
        summary={"tenants": len(tenants)},
    )
    if not tenants:
        output.console.print("No tenant was set: all have the weight 1 and no parent.")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("tenant", min_width=12)
    table.add_column("weight", justify="right", no_wrap=True)
    table.add_column("parent")
    for tenant in tenants:
        table.add_row(cut(tenant.name), f"{tenant.weight:,}", cut(tenant.parent or UNKNOWN))
    output.console.print(table)


@app.command()
def remove(name: Name, data_dir: DataDir = None) -> None:
    """Forget the weight and the parent of a tenant. Its jobs stay as they are."""
    with cell_store(data_dir) as store:
        removed = store.remove_tenant(_readable(name, "NAME"))
    if not removed:
        raise OmegaError(f"tenant {short(name)} was not set; see: omega tenant list")
    Output().console.print(
        f"Tenant {short(name)} has the weight 1 and no parent again.", highlight=False
    )


def _readable(name: str, field: str) -> str:
    try:
        return readable_name(name)
    except ValueError as problem:
        raise BadInput(str(problem), field=field) from problem


def _row(tenant: Tenant) -> dict[str, object]:
    return {"tenant": tenant.name, "weight": tenant.weight, "parent": tenant.parent}
