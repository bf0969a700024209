"""Policies of audits: what is read exactly, and what is refused with file, line and field."""

from fractions import Fraction
from pathlib import Path

import pytest

from omega.errors import BadInput
from omega.model.quotas import Budget, QuotaScope
from omega.workload.audit_policy import ShareLimit, parse_policy, read_policy, window_ms

POLICY = """\
over: 12h
every_tenant: {at_most: 12.5%}
tenants:
  research: {at_most: 60 %, of: gpus}
  "42": {at_most: 0.1, of: dominant}
every_scheduler: {at_most: 1}
schedulers:
  batch: {at_most: 80%, of: cpu}
idle: {at_most: 30m}
"""


def test_a_policy_is_read_exactly(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)

    policy = read_policy(path)

    tenant, kind = QuotaScope.TENANT, QuotaScope.SCHEDULER
    assert (12 * 3_600_000, 30 * 60_000) == (policy.over_ms, policy.idle_ms)
    assert ShareLimit(Fraction(3, 5), Budget.GPU_SLICES) == policy.limit_of(tenant, "research")
    assert ShareLimit(Fraction(1, 10)) == policy.limit_of(tenant, "42")
    assert ShareLimit(Fraction(1, 8)) == policy.limit_of(tenant, "batch")
    assert ShareLimit(Fraction(4, 5), Budget.CPU_MILLI) == policy.limit_of(kind, "batch")
    assert ShareLimit(Fraction(1)) == policy.limit_of(kind, "service")


def test_who_is_not_named_has_no_limit_unless_everybody_has_one() -> None:
    policy = parse_policy("tenants: {ann: {at_most: 40%}}", "p.yaml")

    assert policy.limit_of(QuotaScope.TENANT, "bob") is None
    assert policy.limit_of(QuotaScope.SCHEDULER, "ann") is None
    assert (None, None) == (policy.over_ms, policy.idle_ms)


REFUSED = [
    ("", None, None, "there is no policy in it"),
    ("--- {idle: {at_most: 1s}}\n--- {}", 2, None, "one document"),
    ("- idle", 1, None, "a mapping is expected"),
    ("over: 1h", 1, None, "a policy limits something"),
    ("tenant: {ann: {at_most: 40%}}", 1, "tenant", "did you mean 'tenants'"),
    ("idle: {at_most: 1s}\nover: 0", 2, "over", "is not between a millisecond and ten years"),
    ("idle: {at_most: 1s}\nover: -1h", 2, "over", "is not a duration"),
    ("idle: {at_most: 1s}\nover: .nan", 2, "over", "is not a duration"),
    ("idle: {at_most: 1s}\nover: 1e300", 2, "over", "is not a duration"),
    ("idle: {at_most: 1s}\nover: [1h]", 2, "over", "is not a duration"),
    ("idle: 30m", 1, "idle", "a mapping is expected"),
    ("idle: {}", 1, "idle.at_most", "such as 30m"),
    ("idle: {at_most: 4000d}", 1, "idle.at_most", "up to ten years"),
    ("idle: {at_most: true}", 1, "idle.at_most", "is not a duration"),
    ("tenants: []", 1, "tenants", "must map"),
    ("tenants: {}", 1, "tenants", "must map"),
    ("tenants:\n  ann: 40%", 2, "tenants.ann", "a mapping is expected"),
    ("tenants:\n  ann: {}", 2, "tenants.ann.at_most", "is missing"),
    ("tenants:\n  ann:\n    at_most: 101%", 3, "tenants.ann.at_most", "is not a share"),
    ("tenants:\n  ann:\n    at_most: -1%", 3, "tenants.ann.at_most", "is not a share"),
    ("tenants:\n  ann:\n    at_most: .nan", 3, "tenants.ann.at_most", "is not a share"),
    ("tenants:\n  ann:\n    at_most: 1.5", 3, "tenants.ann.at_most", "is not a share"),
    ("tenants:\n  ann:\n    at_most: 1e300", 3, "tenants.ann.at_most", "is not a share"),
    ("tenants:\n  ann:\n    at_most: true", 3, "tenants.ann.at_most", "is not a share"),
    ("tenants:\n  ann: {at_most: 1%, of: gold}", 2, "tenants.ann.of", "is none of dominant, cpu"),
    ("tenants:\n  ann: {at_most: 1%, of: [cpu]}", 2, "tenants.ann.of", "is none of dominant"),
    ("tenants:\n  ann: {at_moist: 1%}", 2, "tenants.ann.at_moist", "did you mean 'at_most'"),
    ('tenants:\n  "a\\u0007b": {at_most: 1%}', 2, "tenants", "cannot be printed"),
    ("tenants:\n  ann: {at_most: 1%}\n  ann: {at_most: 2%}", 3, "ann", "occurs twice"),
    ("every_tenant: 3", 1, "every_tenant", "a mapping is expected"),
]


@pytest.mark.parametrize(("text", "line", "field", "said"), REFUSED)
def test_what_is_no_policy_is_refused_with_its_place(
    text: str, line: int | None, field: str | None, said: str
) -> None:
    with pytest.raises(BadInput) as refusal:
        parse_policy(text, "policy.yaml")

    sentence = str(refusal.value)
    assert sentence.startswith("policy.yaml" + (f", line {line}" if line else ""))
    assert said in sentence
    assert field is None or field in sentence


@pytest.mark.parametrize("name", ["nowhere.yaml", "nul\0l", "."])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_policy(tmp_path / name)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(BadInput, match="it is not UTF-8"):
        read_policy(path)


@pytest.mark.parametrize("text", ["0", "0s", "-5", "nan", "inf", "1e300", "9" * 300, "3651d", ""])
def test_a_window_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not|is more|is finer"):
        window_ms(text)


def test_windows_are_read_in_the_units_of_durations() -> None:
    assert [1, 1_500, 86_400_000] == [window_ms(text) for text in ("1ms", 1.5, "24h")]
