"""`omega quota`: limits on what tenants and kinds of schedulers hold.

Goal     Let an operator limit what each tenant and kind of scheduler holds, and see what is left.
Promise  `set` sets a quota as a whole, so that the same command always gives the same quota. A
         value that cannot be read is refused before anything changes. `remove` exits 1 if there is
         no such quota.
Source   OwnerStore.set_quota, remove_quota and quotas; docs/decisions/0016-quotas.md.
"""

from typing import Annotated

import typer

from omega.cli.cell_access import DemoOption, ReadFrom, cell_reader, cell_store
from omega.cli.quota.screens import quotas_table
from omega.errors import BadInput, OmegaError
from omega.model.quotas import Budget, Quota, QuotaScope, QuotaUse
from omega.reports.quotas import NAMES, row_of, used_up, whose
from omega.store.protocols import QuotaReader
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo
from omega.workload.quantities import limit_of
from omega.workload.spec_parts import readable_name

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")

TenantOption = Annotated[
    str | None,
    typer.Option("--tenant", metavar="NAME", help="The tenant whose jobs the quota is for."),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler", metavar="KIND", help="Or the kind of scheduler whose jobs it is for."
    ),
]
SUBJECTS = {QuotaScope.TENANT: "--tenant", QuotaScope.SCHEDULER: "--scheduler"}


@app.command("set")
def set_quota(  # noqa: PLR0913, PLR0917 - a parameter is an option
    tenant: TenantOption = None,
    scheduler: SchedulerOption = None,
    cpu: Annotated[
        str | None, typer.Option(metavar="CORES", help="Cores: 100, 0.5 or 500m.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory: 400GiB or 1.5TiB.")
    ] = None,
    disk: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Disk, in the units of memory.")
    ] = None,
    gpus: Annotated[
        str | None, typer.Option(metavar="N", help="GPUs on all machines together: 8 or 2.5.")
    ] = None,
    jobs: Annotated[
        str | None, typer.Option(metavar="N", help="Jobs that have something running.")
    ] = None,
    data_dir: DataDir = None,
    json_to: JsonTo = None,
) -> None:
    """Limit what the jobs of a tenant, or of a kind of scheduler, hold at a time.

    A quota is set as a whole: what is not named is not limited, even if it was.
    What runs above a limit goes on, and nothing is added to it.

    [bold]omega quota set --tenant research --cpu 100 --memory 400GiB --gpus 8 --jobs 20[/]
    """
    output = Output(json_to)
    scope, name = _subject(tenant, scheduler)
    said = dict(zip(Budget, (cpu, memory, disk, gpus, jobs), strict=True))
    quota = Quota(scope, name, _limits(said))
    with cell_store(data_dir) as store:
        store.set_quota(quota)
        use = _use_of(store, scope, name)
    output.document(
        parameters={
            "scope": scope.value,
            "name": name,
            **{NAMES[budget]: text for budget, text in said.items()},
        },
        rows=[row_of(use)],
        summary={"quotas": 1},
    )
    console = output.console
    console.print(f"The quota of {whose(quota)} is set.", highlight=False)
    console.print(quotas_table([use]))
    if any(left < 0 for left in use.left.values()):
        console.print("More is used than it allows: that goes on, and nothing is added to it.")


@app.command("list")
def list_quotas(
    data_dir: DataDir = None,
    read_from: ReadFrom = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """List all quotas: what each allows, what is used of it, and what is left.

    A dash is what is not limited. A job counts while something of it runs.
    """
    output = Output(json_to)
    with cell_reader(data_dir, read_from, demo=demo) as store:
        uses = store.quotas()
    output.document(
        parameters={"demo": demo},
        rows=[row_of(use) for use in uses],
        summary={"quotas": len(uses), "used_up": len(list(used_up(uses)))},
    )
    if uses:
        output.console.print(quotas_table(uses))
    else:
        output.console.print("There are no quotas: everybody may hold whatever there is.")


@app.command()
def remove(
    tenant: TenantOption = None, scheduler: SchedulerOption = None, data_dir: DataDir = None
) -> None:
    """Lift the quota of a tenant or of a kind of scheduler."""
    scope, name = _subject(tenant, scheduler)
    with cell_store(data_dir) as store:
        removed = store.remove_quota(scope, name)
    if not removed:
        raise OmegaError(f"there is no quota of {scope.value} {name}; see: omega quota list")
    Output().console.print(f"The quota of {scope.value} {name} is lifted.", highlight=False)


def _subject(tenant: str | None, scheduler: str | None) -> tuple[QuotaScope, str]:
    """Return the scope and the name; raise BadInput unless exactly one of the two is given."""
    said = {QuotaScope.TENANT: tenant, QuotaScope.SCHEDULER: scheduler}
    named = [(scope, name) for scope, name in said.items() if name is not None]
    if len(named) != 1:
        raise BadInput(
            "a quota is for one tenant or for one kind of scheduler: name one of them",
            field=" or ".join(SUBJECTS.values()),
        )
    ((scope, name),) = named
    try:
        return scope, readable_name(name)
    except ValueError as problem:
        raise BadInput(str(problem), field=SUBJECTS[scope]) from problem


def _limits(said: dict[Budget, str | None]) -> dict[Budget, int]:
    limits = {}
    for budget, text in said.items():
        if text is None:
            continue
        try:
            limits[budget] = limit_of(budget, text)
        except ValueError as problem:
            raise BadInput(str(problem), field=f"--{NAMES[budget]}") from problem
    if not limits:
        options = ", ".join(f"--{name}" for name in NAMES.values())
        raise BadInput(f"a quota limits something: name at least one of {options}")
    return limits


def _use_of(store: QuotaReader, scope: QuotaScope, name: str) -> QuotaUse:
    for use in store.quotas():
        if (use.quota.scope, use.quota.name) == (scope, name):
            return use
    raise OmegaError(f"somebody else has lifted the quota of {scope.value} {name} meanwhile")
