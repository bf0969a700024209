"""`omega db`: make, migrate, check, examine and prune the database.

Goal     Create and migrate the database that the other verbs need, and check that it is sound.
Promise  `init` and `migrate` are harmless when repeated. `verify` exits 1 when anything is broken.
Source   omega.store.postgres.schema; ReaderStore.verify.
"""

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from omega.cli.cell_access import DemoOption, ReadFrom, cell_reader, cell_url
from omega.cli.db import doctor, prune
from omega.reports.machines import overdue
from omega.reports.printable import printable
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo
from omega.terminal.terminal import PrintableConsole

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")
app.command("doctor")(doctor.command)
app.command("prune")(prune.command)


@app.command()
def init(
    roles: Annotated[
        bool,
        typer.Option(
            "--roles", help="Make the roles for logins, and limit these; takes CREATEROLE."
        ),
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Make the database ready: start it, and bring its tables up to date.

    [bold]--roles[/] makes omega_scheduler, omega_node, omega_submitter and omega_reader,
    so that each process can have a login which may do its work and no more. Those
    that the server has are left alone. Logins are yours to make, in SQL:

    [bold]CREATE ROLE alice LOGIN PASSWORD '...' IN ROLE omega_scheduler[/]

    It also limits what these logins can use up, as far as this database's user may: how
    many connections each has, for how long statements run and transactions idle, and
    who may make temporary tables or take advisory locks. It says what it has set, and
    which SQL sets the rest. What is set already stays. Repeat it after making logins.
    """
    # Alembic and SQLAlchemy load slowly, and no other verb here needs them.
    from omega.store.postgres import revision, schema  # noqa: PLC0415
    from omega.store.postgres import roles as declared  # noqa: PLC0415

    with cell_url(data_dir) as url:
        before = revision.current(url)
        limits = schema.migrate(url, make_roles=roles)
    state = "is ready" if before is None else "was ready before, and is up to date"
    console = Output().console
    console.print(f"The database {state} (schema {revision.head()}).", highlight=False)
    if roles:
        made = ", ".join(role.name for role in declared.ROLES)
        console.print(f"Roles for logins: {made}.", highlight=False, soft_wrap=True)
    for one in limits.done:
        console.print(f"Set: {printable(one.what)}.", highlight=False, soft_wrap=True)
    for one in limits.left:
        left = f"Not set: {one.what}. {one.who} may run: {one.sql}"
        console.print(printable(left), highlight=False, soft_wrap=True)


@app.command()
def migrate(data_dir: DataDir = None) -> None:
    """Bring the tables and functions up to date with this version of omega."""
    from omega.store.postgres import revision, schema  # noqa: PLC0415 - as above

    with cell_url(data_dir) as url:
        before = revision.current(url)
        schema.migrate(url)
    Output().console.print(
        f"The schema is {revision.head()}; it was {before or 'not there'}.", highlight=False
    )


@app.command()
def verify(
    data_dir: DataDir = None,
    read_from: ReadFrom = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """Check every invariant in the database; exit 1 and list them when any is broken.

    Live tasks whose allocated amounts differ from their job's request are listed, too: no commit
    compares the two, so that a scheduler that errs, or cheats, is found here.

    It also says what is overdue on machines that failed or shrank while no scheduler ran.
    """
    output = Output(json_to)
    with cell_reader(data_dir, read_from, demo=demo) as store:
        violations = [*store.verify(), *store.verify_amounts()]
        late = overdue(store.use(), store.notices(), store.reports())
    output.document(
        parameters={"demo": demo},
        rows=[vars(violation) for violation in violations],
        summary={"violations": len(violations), "overdue": late},
    )
    for sentence in late:  # this breaks no invariant: the tasks are still counted
        output.console.print(sentence, style="yellow", highlight=False)
    if not violations:
        output.console.print("Every invariant holds.", style="green")
        return
    table = Table("invariant", "where", "what", title="Broken invariants", title_justify="left")
    for violation in violations:
        said = (violation.invariant, violation.subject, violation.detail)
        table.add_row(*(Text(printable(text)) for text in said))
    output.console.print(table)
    raise typer.Exit(1)


@app.command()
def url(data_dir: DataDir = None, demo: DemoOption = False) -> None:
    """Print the database's URL, as psql takes it. It may hold a password.

    An embedded server runs only while somebody needs it: a scheduler, say, or another verb.
    """
    with cell_url(data_dir, demo=demo) as found:
        PrintableConsole().print(found, highlight=False, soft_wrap=True)
