"""The functions in Postgres: SQL files, and how they are rendered for the kinds and installed.

Goal     Keep SQL in SQL files, with one line for all kinds where a kind is a column.
Promise  `{{ text }}` becomes the text once a kind, joined by commas or by what follows the last
         ` | ` inside the braces; `${kind}` is the kind's column, `${number}` its place from 1,
         `${kinds}` their number. `[[ text ]]` is the same once a budget of quotas. All functions
         are dropped and made anew in one transaction.
Source   docs/decisions/0007-functions-are-installed-anew.md.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from string import Template

from omega.model.quotas import BUDGETS, UNLIMITED, Budget
from omega.model.resources import COLUMNS, KINDS
from omega.store.postgres.tables import SHARDS

# In order: a function of LANGUAGE sql needs those it calls to be there.
FILES = (
    "claim_arrays.sql",
    "reading.sql",
    "quotas.sql",
    "quota_use.sql",
    "judge_parts.sql",
    "judge_claims.sql",
    "apply_grants.sql",
    "apply_exchange.sql",
    "commit_claims.sql",
    "tasks.sql",
    "queue.sql",
    "force.sql",
    "machines.sql",
    "verify.sql",
)

_FOR_EACH = {
    re.compile(r"\{\{ (.+?)(?: \| (\S+))? \}\}", re.DOTALL): [{"kind": name} for name in COLUMNS],
    re.compile(r"\[\[ (.+?)(?: \| (\S+))? \]\]", re.DOTALL): [
        {"budget": budget.column} for budget in Budget
    ],
}
"""What a text is repeated for, by the brackets around it."""

_CONSTANTS = {
    "kinds": str(KINDS),
    "budgets": str(BUDGETS),
    "shards": str(SHARDS),
    "unlimited": str(UNLIMITED),
    "costs": ", ".join(
        " + ".join(f"_{kind.column}" for kind in budget.kinds) or "0" for budget in Budget
    ),
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
    for name, value in _CONSTANTS.items():
        sql = sql.replace(f"${{{name}}}", value)
    return sql


def _repeated(members: Sequence[Mapping[str, str]], match: re.Match[str]) -> str:
    text, joint = match.groups()
    copies = (
        Template(text).safe_substitute(member, number=number)
        for number, member in enumerate(members, start=1)
    )
    return (f" {joint} " if joint else ", ").join(copies)
