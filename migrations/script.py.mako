"""${message}.

Goal     What changes, in one sentence.
Promise  Down after up leaves the tables as they were.
Source   the decision page that asks for it.
"""

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    """Apply the change."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Take the change back."""
    ${downgrades if downgrades else "pass"}
