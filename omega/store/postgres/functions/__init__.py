"""The functions in Postgres: SQL files, and how they are rendered for the kinds and installed.

Goal     Keep SQL in SQL files, with one line for all kinds where a kind is a column.
Promise  `{{ text }}` becomes the text once a kind, joined by commas or by what follows the last
         ` | ` inside the braces; `${kind}` is the kind's column, `${number}` its place from 1.
         `[[ text ]]` is the same once a budget of quotas. Elsewhere, `${name}` is one of CONSTANTS,
         limits among them. All functions are dropped and made anew in one transaction.
Source   docs/decisions/0007-functions-are-installed-anew.md.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from string import Template

from omega.lifecycle.states import ParkReason
from omega.limits import LIMITS
from omega.model.quotas import BUDGETS, UNLIMITED, Budget
from omega.model.resources import COLUMNS, DEVICES_MAX, GPU_SLICES, KINDS
from omega.store.postgres.tables import SHARDS

# In order: a function of LANGUAGE sql needs those it calls to be there.
FILES = (
    "arguments.sql",
    "claim_arrays.sql",
    "nodes.sql",
    "reading.sql",
    "quotas.sql",
    "quota_use.sql",
    "judge_parts.sql",
    "judge_claims.sql",
    "apply_grants.sql",
    "apply_exchange.sql",
    "commit_claims.sql",
    "tasks.sql",
    "specs.sql",
    "queue.sql",
    "force.sql",
    "catalogues.sql",
    "machines.sql",
    "registry.sql",
    "history.sql",
    "verify.sql",
)

_FOR_EACH = {
    re.compile(r"\{\{ (.+?)(?: \| (\S+))? \}\}", re.DOTALL): [{"kind": name} for name in COLUMNS],
    re.compile(r"\[\[ (.+?)(?: \| (\S+))? \]\]", re.DOTALL): [
        {"budget": budget.column} for budget in Budget
    ],
}
"""What a text is repeated for, by the brackets around it."""

CONSTANTS = {
    "kinds": KINDS,
    "budgets": BUDGETS,
    "shards": SHARDS,
    "unlimited": UNLIMITED,
    "costs": ", ".join(
        " + ".join(f"_{kind.column}" for kind in budget.kinds) or "0" for budget in Budget
    ),
    "devices_max": DEVICES_MAX,
    "gpu_slices": GPU_SLICES,
    "park_reasons": ",".join(reason.value for reason in ParkReason),
    **vars(LIMITS),
}

DROP_ALL = """
DO $$
DECLARE
    it regprocedure;
BEGIN
    FOR it IN SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'omega'::regnamespace LOOP
        EXECUTE 'DROP FUNCTION ' || it || ' CASCADE';
    END LOOP;
END $$
"""


def rendered() -> Iterator[str]:
    """Yield the SQL of each file, in the order of installation."""
    for name in FILES:
        yield render(files(__name__).joinpath(name).read_text(encoding="utf-8"))


def render(sql: str) -> str:
    """Write out, in SQL as it lies in the files, what is said once for all kinds or budgets."""
    for bracket, members in _FOR_EACH.items():
        sql = bracket.sub(partial(_repeated, members), sql)
    for name, value in CONSTANTS.items():
        sql = sql.replace(f"${{{name}}}", str(value))
    return sql


def _repeated(members: Sequence[Mapping[str, str]], match: re.Match[str]) -> str:
    text, joint = match.groups()
    copies = (
        Template(text).safe_substitute(member, number=number)
        for number, member in enumerate(members, start=1)
    )
    return (f" {joint} " if joint else ", ").join(copies)
