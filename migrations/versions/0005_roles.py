"""Who reports, and which machines a role stands for.

Goal     Let a report be its process's own, and the end of a task its machine's.
Promise  Down after up leaves the tables as they were; who stood for which machine is gone then.
Source   docs/decisions/0017-roles.md.
"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table and the column; what was reported so far is the migrating login's."""
    op.execute("ALTER TABLE omega.process ADD login text NOT NULL DEFAULT SESSION_USER")
    op.execute(
        "CREATE TABLE omega.node ("
        " role_name text CONSTRAINT node_pkey PRIMARY KEY,"
        " machines int4multirange NOT NULL,"
        " changed_by xid8 NOT NULL DEFAULT pg_current_xact_id())"
    )


def downgrade() -> None:
    """Drop them."""
    op.execute("DROP TABLE omega.node")
    op.execute("ALTER TABLE omega.process DROP login")
