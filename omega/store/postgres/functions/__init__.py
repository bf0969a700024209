"""The functions in Postgres: SQL files, and how they are rendered for the kinds and installed.

Goal     Keep SQL in SQL files, with one line for all kinds where a kind is a column.
Promise  `{{ text }}` becomes the text once a kind, joined by commas or by what follows the last
         ` | ` inside the braces; `${kind}` is the kind's column, `${number}` its place from 1.
         Elsewhere, `${name}` is one of CONSTANTS, limits among them. All functions are dropped and
         made anew in one transaction.
Source   docs/decisions/0007-functions-are-installed-anew.md.
"""

import re
from collections.abc import Iterator
from importlib.resources import files
from string import Template

from omega.lifecycle.states import ParkReason
from omega.limits import LIMITS
from omega.model.resources import COLUMNS, DEVICES_MAX, GPU_SLICES, KINDS

# In order: a function of LANGUAGE sql needs those it calls to be there.
FILES = (
    "arguments.sql",
    "claim_arrays.sql",
    "reading.sql",
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
    "verify.sql",
)

CONSTANTS = {
    "kinds": KINDS,
    "devices_max": DEVICES_MAX,
    "gpu_slices": GPU_SLICES,
    "park_reasons": ",".join(reason.value for reason in ParkReason),
    **vars(LIMITS),
}

_FOR_EACH_KIND = re.compile(r"\{\{ (.+?)(?: \| (\S+))? \}\}", re.DOTALL)

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
        yield _render(files(__name__).joinpath(name).read_text(encoding="utf-8"))


def _render(sql: str) -> str:
    def for_each_kind(match: re.Match[str]) -> str:
        text, joint = match.groups()
        copies = (
            Template(text).safe_substitute(kind=column, number=number, kinds=KINDS)
            for number, column in enumerate(COLUMNS, start=1)
        )
        return (f" {joint} " if joint else ", ").join(copies)

    sql = _FOR_EACH_KIND.sub(for_each_kind, sql)
    for name, value in CONSTANTS.items():
        sql = sql.replace(f"${{{name}}}", str(value))
    return sql
