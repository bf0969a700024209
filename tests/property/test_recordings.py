"""Recordings: what is written is read back and judged alike; what is changed is refused or read."""

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omega.cell.judge import judge
from omega.errors import BadInput
from omega.framework.recording import with_victims, without_tokens
from omega.model.claims import ConflictRule
from omega.model.outcomes import Outcome, Verdict
from omega.reports.replay import replay
from omega.store.saved.recorded import Against, RecordedCommit
from omega.store.saved.recordings import RecordingFile, recorded_commits
from omega.testing.strategies import Case, cases

AT_MS = 1_700_000_000_000
VALUES: st.SearchStrategy[Any] = (
    st.none()
    | st.integers(-3, 12)
    | st.sampled_from([2**40, 2**70, 1.5, True, [], [1, 2], {}])
    | st.text(max_size=3)
)


def recorded(case: Case, outcome: Outcome | None = None) -> RecordedCommit:
    """Return a case as it would be recorded with this outcome, or its own."""
    told = judge(case.rows, case.transaction, case.context) if outcome is None else outcome
    evicted = zip(told.evicted_job.tolist(), told.evicted_task.tolist(), strict=True)
    return RecordedCommit(
        at_ms=AT_MS,
        transaction=without_tokens(case.transaction),
        verdicts=told.verdicts,
        machine=told.machine,
        evicted=tuple(evicted),
        against=Against(with_victims(case.rows, case.context.victims), case.context),
    )


def write(path: Path, *commits: RecordedCommit, ends: bool = True) -> None:
    file = RecordingFile(path, kind="batch", replica="a", began_ms=AT_MS)
    for commit in commits:
        file.write(commit)
    if ends:
        file.close()


@contextmanager
def a_file() -> Iterator[Path]:
    """Yield where a file may be written."""
    with TemporaryDirectory() as folder:
        yield Path(folder) / "batch.recording"


@given(st.lists(cases(), max_size=4))
def test_the_same_rule_gives_the_same_verdicts(drawn: list[Case]) -> None:
    with a_file() as path:
        write(path, *map(recorded, drawn))

        report = replay(recorded_commits(path))

    assert (len(drawn), 0, 0, []) == (
        report.commits,
        report.differ,
        report.without_facts,
        report.told,
    )


@given(cases(), st.sampled_from(ConflictRule))
def test_another_rule_gives_what_the_judge_says_by_it(case: Case, rule: ConflictRule) -> None:
    was = judge(case.rows, case.transaction, case.context)
    now = judge(case.rows, replace(case.transaction, rule=rule), case.context)
    with a_file() as path:
        write(path, recorded(case))

        report = replay(recorded_commits(path), rule)

    differ = (was.verdicts != now.verdicts) | (was.machine != now.machine)
    told = [claim for commit in report.told for claim in commit.claims]
    assert case.transaction.claims.task[differ].tolist() == [claim.task for claim in told]
    assert [Verdict(it).name.lower() for it in now.verdicts[differ].tolist()] == [
        claim.now for claim in told
    ]
    evicted = [
        list(zip(it.evicted_job.tolist(), it.evicted_task.tolist(), strict=True))
        for it in (was, now)
    ]
    assert bool(differ.any() or evicted[0] != evicted[1]) == bool(report.differ)


@given(cases())
def test_a_forged_verdict_is_found_out(case: Case) -> None:
    true = judge(case.rows, case.transaction, case.context)
    if not len(true.verdicts):
        return
    forged = true.verdicts.copy()
    forged[0] = (forged[0] + 1) % len(Verdict)
    with a_file() as path:
        write(path, recorded(case, replace(true, verdicts=forged)))

        report = replay(recorded_commits(path))

    assert 1 == report.differ


@given(cases(), st.data())
def test_a_changed_file_is_read_or_refused_in_one_sentence(case: Case, data: st.DataObject) -> None:
    with a_file() as path:
        write(path, recorded(case))
        lines = path.read_bytes().splitlines(keepends=True)
        document = json.loads(lines[1])
        where, key = data.draw(st.sampled_from(list(keys_in(document))), label="where")
        values: st.SearchStrategy[Any] = (
            st.none() | st.integers(-3, 12) | st.just(2**40) | st.just([]) | st.just({})
        )
        where[key] = data.draw(values | st.just([1, 2]) | st.text(max_size=3), label="value")
        path.write_bytes(b"".join([lines[0], json.dumps(document).encode() + b"\n", lines[2]]))

        said = refusal_of(path)

    assert said is None or ("batch.recording, line 2" in said and "\n" not in said)


def refusal_of(path: Path) -> str | None:
    """Judge a file; return the sentence with which it is refused, if it is."""
    try:
        report = replay(recorded_commits(path))
    except BadInput as refusal:
        return str(refusal)
    assert 1 == report.commits + report.without_facts
    return None


def keys_in(document: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - JSON
    """Yield each place in a document, as what holds it and its key."""
    pairs = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    for key, value in list(pairs):
        yield document, key
        yield from keys_in(value)


@given(cases(), st.data())
def test_a_cut_file_is_refused_unless_it_may_be_unfinished(case: Case, data: st.DataObject) -> None:
    with a_file() as path:
        write(path, recorded(case), recorded(case))
        whole = path.read_bytes()
        first = whole.index(b"\n") + 1
        cut = data.draw(st.integers(first, len(whole) - 2), label="cut")
        path.write_bytes(whole[:cut])

        with pytest.raises(BadInput, match=r"batch.recording, line \d"):
            list(recorded_commits(path))
        kept = list(recorded_commits(path, is_unfinished=True))

    assert whole[:cut].count(b"\n") - 1 == len(kept)


@given(cases())
def test_a_file_that_lacks_only_its_last_line_break_is_whole(case: Case) -> None:
    with a_file() as path:
        write(path, recorded(case))
        path.write_bytes(path.read_bytes().removesuffix(b"\n"))

        commits = list(recorded_commits(path))

    assert 1 == len(commits)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda lines: [], "line 1: the last line is missing"),
        (lambda lines: lines[1:], "line 1: it is no file that omega scheduler run --record wrote"),
        (lambda lines: [b"nonsense\n"], "line 1: Invalid JSON"),
        (lambda lines: [b"\x00" * 99], "line 1: Invalid JSON"),
        (lambda lines: [lines[0], lines[0]], "line 2: a line 'recording' must not come after"),
        (lambda lines: [*lines, lines[0]], "line 4: there is something after the last line"),
        (lambda lines: [lines[0], lines[2]], "line 2, field commits: it has 0 commits before"),
        (lambda lines: [lines[0].replace(b'"version":1', b'"version":2')], "field version"),
        (lambda lines: [lines[0].replace(b'"kind"', b'"kin"')], "field kind: Field required"),
        (lambda lines: [b'{"line":"cell"}\n'], "`line` is none of recording, commit, end"),
    ],
)
@settings(max_examples=3)  # what is refused is the file, whatever was recorded
@given(case=cases())
def test_what_is_no_recording_is_refused(case: Case, change: object, sentence: str) -> None:
    assert callable(change)
    with a_file() as path:
        write(path, recorded(case))
        path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))

        with pytest.raises(BadInput) as refused:
            list(recorded_commits(path))

    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("forge", "field"),
    [
        (
            lambda it: it.update(
                evictions={name: [0] * 10_001 for name in ("claim", "job", "task")}
            ),
            "evictions.claim",
        ),
        (
            lambda it: it["against"].update(
                quotas={"left": [[0] * 5], "drawn_by": [[1, [0] * 9]], "running": [[1, 0]]}
            ),
            "against.quotas.drawn_by.0.1",
        ),
    ],
    ids=["evictions", "quotas"],
)
@given(case=cases())
@settings(max_examples=5)
def test_more_than_a_store_takes_is_refused_before_it_is_judged(
    case: Case, forge: Callable[[Any], object], field: str
) -> None:
    with a_file() as path:
        write(path, recorded(case))
        first, commit, last = path.read_bytes().splitlines(keepends=True)
        document = json.loads(commit)
        forge(document)
        path.write_bytes(b"".join([first, json.dumps(document).encode() + b"\n", last]))

        said = refusal_of(path)

    assert said is not None
    assert f"batch.recording, line 2, field {field}: List should have at most" in said


def test_a_file_that_is_there_is_not_overwritten_and_only_its_owner_reads_it() -> None:
    with a_file() as path:
        write(path)
        before = path.read_bytes()

        with pytest.raises(BadInput, match="it is there, and is not overwritten"):
            write(path)

        assert before == path.read_bytes()
        assert stat.S_IRUSR | stat.S_IWUSR == stat.S_IMODE(os.stat(path).st_mode)
    with pytest.raises(BadInput, match="it cannot be written"):
        write(path)  # its folder is gone


@given(cases())
def test_a_commit_without_facts_is_counted_and_not_judged(case: Case) -> None:
    with a_file() as path:
        write(path, replace(recorded(case), against=None))

        report = replay(recorded_commits(path))

    assert (0, 0, 1) == (report.commits, report.differ, report.without_facts)
