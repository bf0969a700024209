"""The SQL of the functions: verdicts stand in it by name."""

import re
from collections.abc import Iterator
from importlib.resources import files

import pytest

from omega.model.outcomes import Verdict
from omega.store.postgres import functions

LITERAL = re.compile(
    r"\bverdicts?(?:\[\w+\])?\s*(?:=|<>|:=|(?:NOT\s+)?IN\s*\()\s*\d"  # compared or set
    r"|\d\s*(?:=|<>)\s*(?:ANY|ALL)\s*\(\s*\w*verdicts\b"
    r"|\bof_machine\([^;]*?\)\s*(?:=|<>)\s*\d"
    r"|\barray_fill\(\s*\d+::smallint"
)
"""A number where a verdict is meant."""
YIELDS_A_VERDICT = re.compile(
    r"\bverdict\s*:=\s*CASE\b.*?\bEND\b"
    r"|FUNCTION omega\.of_machine\(.*?\$\$.*?\$\$",
    re.DOTALL,
)
BRANCH = re.compile(r"\b(?:THEN|ELSE)\s+\d")


def literal_verdicts(sql: str) -> Iterator[str]:
    """Yield each place where a verdict stands as a number."""
    code = re.sub(r"--.*", "", sql)
    yield from (match.group() for match in LITERAL.finditer(code))
    for case in YIELDS_A_VERDICT.finditer(code):
        yield from BRANCH.findall(case.group())


@pytest.mark.parametrize("name", functions.FILES)
def test_no_verdict_is_a_number(name: str) -> None:
    sql = files(functions).joinpath(name).read_text(encoding="utf-8")

    assert [] == list(literal_verdicts(sql))


@pytest.mark.parametrize(
    "sql",
    [
        "verdict := 8;",
        "IF verdict = 0 THEN",
        "IF verdict NOT IN (0, 4, 5) THEN",
        "verdicts[c] := 3;",
        "WHERE c.verdict = 0",
        "IF 0 = ANY (verdicts) THEN",
        "verdicts := array_fill(0::smallint, ARRAY[2]);",
        "AND of_machine(states[o], _seen[o] <> sequences[o]) = 0",
        "verdict := CASE WHEN charge IS NULL THEN 9 END;",
        "verdict := CASE\n WHEN here THEN ${already_placed}\n ELSE 0 END;",
        "FUNCTION omega.of_machine(_state smallint) AS $$\nSELECT CASE WHEN true THEN 6 END $$",
    ],
)
def test_a_verdict_that_is_a_number_is_found(sql: str) -> None:
    assert 1 == len(list(literal_verdicts(sql)))


@pytest.mark.parametrize("verdict", Verdict)
def test_a_name_becomes_the_number_that_is_stored(verdict: Verdict) -> None:
    assert f"verdict = {verdict.value}" == functions.render(
        f"verdict = ${{{verdict.name.lower()}}}"
    )


def test_no_constant_is_left_unrendered() -> None:
    assert [] == [left for sql in functions.rendered() for left in re.findall(r"\$\{\w+\}", sql)]
