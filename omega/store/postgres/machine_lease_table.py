"""The table of machine leases: which agent may run tasks on a machine, and until when.

Goal     Keep what agents renew every few seconds apart from the rows that commits change.
Promise  A machine has at most one holder. Renewing a lease touches no index.
Source   docs/decisions/0045-machine-leases.md.
"""

from sqlalchemy import (
    CheckConstraint,
    Column,
    DateTime,
    Integer,
    MetaData,
    SmallInteger,
    Table,
    Text,
    Uuid,
    text,
)

from omega.model.machines import MachineState


def declare_machine_leases(metadata: MetaData) -> None:
    """Declare the leases; `state_before` is of machines that their leases have declared down."""
    Table(
        "machine_lease",
        metadata,
        Column("machine_id", Integer, primary_key=True, autoincrement=False),
        Column("holder", Uuid, nullable=False),
        Column("login", Text, nullable=False, server_default=text("SESSION_USER")),
        Column("expires_at", DateTime(timezone=True), nullable=False),
        Column("state_before", SmallInteger),
        CheckConstraint(
            f"state_before BETWEEN {MachineState.OPEN:d} AND {MachineState.DRAINING:d}",
            name="state_before_known",
        ),
        # Half-empty pages keep the new version of a row on the row's page.
        postgresql_with={"fillfactor": 50},
    )
