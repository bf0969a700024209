"""The policy of an audit, from a YAML file: who may hold how much, and for how long idly.

Goal     Let an operator write down limits that no commit can judge, in a file of a few lines.
Promise  A limit is read exactly. Anything else than a policy is BadInput with file, line and field.
Source   Omega (EuroSys 2013), section 3.4: limits that are checked after the fact;
         docs/guide/operate.md shows a policy.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Final

from omega.errors import BadInput, did_you_mean
from omega.limits import LIMITS
from omega.model.quotas import Budget, QuotaScope
from omega.workload.quantities import duration_ms, shown
from omega.workload.spec_parts import readable_name
from omega.workload.text_file import read_text
from omega.workload.yaml_lines import Document, Steps, documents

RESOURCES: Final = {
    "cpu": Budget.CPU_MILLI,
    "memory": Budget.MEMORY_MIB,
    "disk": Budget.DISK_MIB,
    "gpus": Budget.GPU_SLICES,
}
"""What a share may be limited of, by its name in the file."""
DOMINANT: Final = "dominant"
"""Of which resource the share is largest: what is limited unless a resource is named."""
SCOPES: Final = {"tenants": QuotaScope.TENANT, "schedulers": QuotaScope.SCHEDULER}
EVERY: Final = {"every_tenant": QuotaScope.TENANT, "every_scheduler": QuotaScope.SCHEDULER}
KEYS: Final = ("over", *EVERY, *SCOPES, "idle")
NAMES_MAX: Final = 10_000
"""Tenants, or kinds of schedulers, that a policy names."""

_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?) ?%", re.ASCII)
_PART = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,9})?", re.ASCII)


@dataclass(frozen=True)
class ShareLimit:
    """The largest share of the cell that somebody should hold."""

    at_most: Fraction
    of: Budget | None = None
    """Of which resource; None: of the one of which the share is largest."""


@dataclass(frozen=True)
class AuditPolicy:
    """What an audit compares with."""

    over_ms: int | None = None
    """The time over which shares are measured, unless the audit's caller names one."""
    every: Mapping[QuotaScope, ShareLimit] = field(default_factory=dict)
    """The limit of each tenant, or kind, that has none of its own."""
    named: Mapping[tuple[QuotaScope, str], ShareLimit] = field(default_factory=dict)
    idle_ms: int | None = None
    """How long a job may hold room without getting on; None: there is no limit."""

    def limit_of(self, scope: QuotaScope, name: str) -> ShareLimit | None:
        """Return the limit of a tenant or of a kind of scheduler; None if it has none."""
        return self.named.get((scope, name), self.every.get(scope))


NO_POLICY: Final = AuditPolicy()


def window_ms(value: object) -> int:
    """Read the time over which shares are measured; raise ValueError for any other value."""
    length = duration_ms(value)
    if length is None or not 1 <= length <= LIMITS.window_ms_max:
        raise ValueError(f"{shown(value)} is not between a millisecond and ten years")
    return length


def read_policy(path: Path) -> AuditPolicy:
    """Read the policy of a file. Raises BadInput."""
    return parse_policy(read_text(path), str(path))


def parse_policy(text: str, file: str) -> AuditPolicy:
    """Return the policy of a YAML text; `file` names it in errors. Raises BadInput."""
    read = documents(text, file)
    if len(read) != 1:
        what = "there is no policy in it" if not read else "one document is expected"
        raise BadInput(what, file=file, line=read[1].line(()) if read else None)
    return _Policy(read[0]).policy()


class _Policy:
    """Turns the values of a document into a policy."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def policy(self) -> AuditPolicy:
        said = self._mapping((), self._document.value, KEYS)
        limits = {
            scope: self._limit((key,), said[key]) for key, scope in EVERY.items() if key in said
        }
        named = {}
        for key, scope in SCOPES.items():
            names = self._names(key, said[key]) if key in said else {}
            for name, limit in names.items():
                named[scope, name] = self._limit((key, name), limit)
        if not (limits or named or "idle" in said):
            keys = ", ".join(key for key in KEYS if key != "over")
            raise self._document.reject((), f"a policy limits something: {keys}")
        return AuditPolicy(
            over_ms=self._window(said["over"]) if "over" in said else None,
            every=limits,
            named=named,
            idle_ms=self._idle(said["idle"]) if "idle" in said else None,
        )

    def _mapping(self, steps: Steps, value: object, keys: tuple[str, ...]) -> dict[str, object]:
        if not isinstance(value, dict):
            wanted = f"a mapping is expected, with {' or '.join(keys)}"
            raise self._document.reject(steps, wanted)
        for key in value:
            if key not in keys:
                sentence = f"there is no such key here{did_you_mean(key, keys)}"
                raise self._document.reject((*steps, key), sentence)
        return value

    def _names(self, key: str, value: object) -> dict[str, object]:
        if not isinstance(value, dict) or not value or len(value) > NAMES_MAX:
            wanted = f"must map 1 to {NAMES_MAX:,} names to limits, as in {{ann: {{at_most: 40%}}}}"
            raise self._document.reject((key,), wanted)
        for name in value:
            try:
                readable_name(name)
            except ValueError as problem:
                raise self._document.reject((key, name), f"as a name: {problem}") from problem
        return value

    def _limit(self, steps: Steps, value: object) -> ShareLimit:
        said = self._mapping(steps, value, ("at_most", "of"))
        if "at_most" not in said:
            raise self._document.reject((*steps, "at_most"), "is missing; write for example 40%")
        of = said.get("of", DOMINANT)
        if of != DOMINANT and not (isinstance(of, str) and of in RESOURCES):
            known = ", ".join((DOMINANT, *RESOURCES))
            raise self._document.reject((*steps, "of"), f"{shown(of)} is none of {known}")
        at_most = _share(said["at_most"])
        if at_most is None:
            sentence = f"{shown(said['at_most'])} is not a share; write for example 40% or 0.4"
            raise self._document.reject((*steps, "at_most"), sentence)
        return ShareLimit(at_most, RESOURCES.get(str(of)))

    def _window(self, value: object) -> int:
        try:
            return window_ms(value)
        except ValueError as problem:
            raise self._document.reject(("over",), str(problem)) from problem

    def _idle(self, value: object) -> int:
        said = self._mapping(("idle",), value, ("at_most",))
        steps = ("idle", "at_most")
        try:
            length = duration_ms(said.get("at_most"))
        except ValueError as problem:
            raise self._document.reject(steps, str(problem)) from problem
        if length is None or length > LIMITS.window_ms_max:
            raise self._document.reject(steps, "must be a time of up to ten years, such as 30m")
        return length


def _share(value: object) -> Fraction | None:
    """Return a share of one, exactly; None for what is not one."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).strip()
    percent = _PERCENT.fullmatch(text)
    if percent is not None:
        share = Fraction(percent[1]) / 100
    elif _PART.fullmatch(text):
        share = Fraction(text)
    else:
        return None
    return share if share <= 1 else None
