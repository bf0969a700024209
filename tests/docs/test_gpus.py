"""The commands of the page on GPUs do what it says, typed as they are written."""

import json
import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from schedulers.ml_gpu.__main__ import main as ml_gpu
from tests.architecture.tree import ROOT
from tests.docs.documents import blocks, document, marked
from tests.docs.shell import Shell, saved, steps

GPUS = document("docs/guide/gpus.md")


@pytest.mark.skipif(find_spec("highspy") is None, reason="no ml-gpu extra")
def test_policies_are_listed_and_solved_and_a_trace_is_replayed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    said = []
    for block in marked(GPUS, "gpus"):
        for words in steps(block):
            assert ["python", "-m", "schedulers.ml_gpu"] == words[:3]
            with pytest.raises(SystemExit) as end:
                ml_gpu(words[3:])
            assert end.value.code in {0, None}
            said.append(capsys.readouterr().out)
    policies, solved, replayed = said

    assert "max_min_fairness_perf" in policies
    assert json.loads(solved)["summary"]["gpus_used"]
    assert "jobs" in replayed


@pytest.mark.slow
@pytest.mark.skipif(find_spec("highspy") is None, reason="no ml-gpu extra")
def test_a_job_trains_on_virtual_nodes(empty_database_url: str, tmp_path: Path) -> None:
    (job,) = blocks(GPUS, "yaml")
    saved(job, tmp_path, GPUS.text)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    (block,) = marked(GPUS, "training")
    with Shell(tmp_path, {**os.environ, "OMEGA_DATABASE_URL": empty_database_url}) as shell:
        shell.type(["omega", "db", "init"])
        said = shell.type_all(block)

    (told,) = (text for line, text in said.items() if line.startswith("omega job train"))
    assert "v100" in told or "k80" in told
