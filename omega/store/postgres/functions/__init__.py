"""The functions in Postgres: SQL files, and how they are rendered and installed.

Goal     Keep SQL in SQL files, with one line for all kinds where a kind is a column.
Promise  `{{ text }}` becomes the text once per kind, joined by commas or by what follows the last
         ` | ` inside the braces; `${kind}` is the kind's column, `${number}` its place from 1. A
         file that holds `${of_kinds}` is rendered once for each set of kinds in KINDS_OF.
         `[[ text ]]` is the same once per budget of quotas. Elsewhere, `${name}` is one of
         CONSTANTS, verdicts and limits among them. All functions are dropped and made anew in one
         transaction.
Source   docs/decisions/0007-functions-are-installed-anew.md.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from string import Template

from omega.cell.partition import PARTS_MAX
from omega.lifecycle.states import FINAL, OF_SCHEDULERS, State
from omega.limits import LIMITS
from omega.model.exits import CODE_MAX, SIGNAL_MAX, STREAMS, ExitCause
from omega.model.jobs import NEVER_YIELDS
from omega.model.lanes import (
    CONSTRAINT_CLASSES,
    SHAPE_CLASSES,
    SIZE_UNITS,
    SIZES,
    QueueOrder,
)
from omega.model.outcomes import Verdict
from omega.model.programs import PORT_MAX, RESERVED, SIGNALS
from omega.model.quotas import BUDGETS, UNLIMITED, Budget
from omega.model.resources import COLUMNS, DEVICES, DEVICES_MAX, GPU_SLICES, KINDS
from omega.ordering.deadlines import LAST
from omega.ordering.stage_costs import OLD_PARTS, PICOS_PER_MS
from omega.store.holdings import RESOURCES
from omega.store.postgres.incarnations import (
    INCARNATION_IS_KNOWN,
    INCARNATION_UNKNOWN,
    JOBS_PASSED_OVER,
    MACHINES_PASSED_OVER,
)
from omega.store.postgres.tables import SHARDS

# The order matters: a function of LANGUAGE sql needs the functions that it calls.
FILES = (
    "arguments.sql",
    "incarnations.sql",
    "claim_arrays.sql",
    "nodes.sql",
    "reading.sql",
    "quotas.sql",
    "quota_use.sql",
    "holdings.sql",
    "usage.sql",
    "watching.sql",
    "quota_limits.sql",
    "judge_parts.sql",
    "judge_claims.sql",
    "grant_plainly.sql",
    "apply_verdicts.sql",
    "commit_claims.sql",
    "tasks.sql",
    "exits.sql",
    "specs.sql",
    "elastic.sql",
    "progress.sql",
    "lanes.sql",
    "queue.sql",
    "pipelines.sql",
    "planned.sql",
    "waiting.sql",
    "rounds.sql",
    "turns.sql",
    "forced_eviction.sql",
    "catalogues.sql",
    "machines.sql",
    "machine_leases.sql",
    "registration.sql",
    "registry.sql",
    "history.sql",
    "verify.sql",
    "verify_amounts.sql",
)

KINDS_OF = {"any_kind": COLUMNS, "no_device": COLUMNS[: DEVICES.start]}
"""Sets of kinds by the value of `${of_kinds}`; each begins with the first kind of all."""

KEYS_RENEWED_S = 600
"""For so many seconds after the order of a kind has changed, each call of agree_on_order gives
stages their keys anew. A stage that a transaction holds for longer keeps its old key."""

_A_KIND = re.compile(r"\{\{ (.+?)(?: \| (\S+))? \}\}", re.DOTALL)
_A_BUDGET = re.compile(r"\[\[ (.+?)(?: \| (\S+))? \]\]", re.DOTALL)
_BUDGETS = [{"budget": budget.column} for budget in Budget]

CONSTANTS = {
    "kinds": KINDS,
    "budgets": BUDGETS,
    "shards": SHARDS,
    "unlimited": UNLIMITED,
    "costs": ", ".join(
        " + ".join(f"_{kind.column}" for kind in budget.kinds) or "0" for budget in Budget
    ),
    "devices_max": DEVICES_MAX,
    "kinds_without_devices": DEVICES.start,
    "gpu_slices": GPU_SLICES,
    "never_yields": NEVER_YIELDS,
    "reserved": RESERVED,
    "port_max": PORT_MAX,
    "signals": ",".join(SIGNALS),
    "parts_max": PARTS_MAX,
    "incarnation_is_known": INCARNATION_IS_KNOWN,
    "incarnation_unknown": INCARNATION_UNKNOWN,
    "jobs_passed_over": JOBS_PASSED_OVER,
    "machines_passed_over": MACHINES_PASSED_OVER,
    "final_states": ", ".join(f"'{state.value}'" for state in State if state in FINAL),
    "exit_causes": ",".join(cause.value for cause in ExitCause),
    "exit_code_max": CODE_MAX,
    "signal_max": SIGNAL_MAX,
    "streams": ",".join(STREAMS),
    "park_reasons": ",".join(reason.value for reason in OF_SCHEDULERS),
    "resources": len(RESOURCES),
    "constraint_classes": CONSTRAINT_CLASSES,
    "shape_classes": SHAPE_CLASSES,
    "sizes": SIZES,
    "size_units": ",".join(map(str, SIZE_UNITS)),
    "last_key": LAST,
    "old_parts": OLD_PARTS,
    "picos_per_ms": PICOS_PER_MS,
    "keys_renewed_s": KEYS_RENEWED_S,
    "fair_orders": "', '".join(order.value for order in QueueOrder if order.is_fair),
    "queue_orders": "', '".join(order.value for order in QueueOrder),
    "queue_orders_told": ", ".join(order.value for order in QueueOrder),
    **{verdict.name.lower(): int(verdict) for verdict in Verdict},
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
        sql = files(__name__).joinpath(name).read_text(encoding="utf-8")
        if "${of_kinds}" in sql:
            for of_kinds, columns in KINDS_OF.items():
                yield render(sql.replace("${of_kinds}", of_kinds), columns)
        else:
            yield render(sql)


def render(sql: str, columns: Sequence[str] = COLUMNS) -> str:
    """Return the SQL with what is written once for all kinds or budgets repeated for each."""
    sql = _A_KIND.sub(partial(_repeated, [{"kind": name} for name in columns]), sql)
    sql = _A_BUDGET.sub(partial(_repeated, _BUDGETS), sql)
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
