"""The schedulers that README and guide show work, installed and run as they say."""

import os
import re
import sys
import tomllib
from pathlib import Path

import pytest

from omega.errors import BadInput
from omega.framework.scheduler import Scheduler
from omega.lifecycle.states import State
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_job, a_view
from omega.workload.spec import read_specs
from tests.architecture.tree import ROOT
from tests.docs.documents import blocks, document, marked, section, table
from tests.docs.shell import Shell, saved

README = document("README.md")
GUIDE = document("docs/guide/schedulers.md")
LISTING = section(README, "Your own scheduler")
LINES_MAX = 20
CHANGE = re.compile(r"change\s`(.+)` in `job.yaml` to `(.+)`\.")


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder for Python's path, in which the README's package lies as pip installs it."""
    site = tmp_path / "site"
    (module,), (project,) = blocks(LISTING, "python"), blocks(LISTING, "toml")
    before, after = LISTING.text.split(module.text)
    metadata = site / "roomiest-1.0.dist-info"
    metadata.mkdir(parents=True)
    saved(module, site, before)
    told = tomllib.loads(saved(project, site, after).read_text())["project"]
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {told['name']}\nVersion: {told['version']}\n"
    )
    entries = [
        "\n".join([f"[{group}]", *(f"{name} = {where}" for name, where in named.items())])
        for group, named in told["entry-points"].items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(entries))
    return site


def test_the_listing_is_the_one_that_other_tests_use() -> None:
    (listing,) = blocks(LISTING, "python")
    code = [line for line in listing.text.splitlines() if line and not line.startswith('"""')]

    assert (ROOT / "tests/contract/stranger.py").read_text() == listing.text
    assert len(code) <= LINES_MAX


@pytest.mark.slow
def test_first_steps_and_scheduler_work_on_a_server_of_ones_own(
    empty_database_url: str, installed: Path, tmp_path: Path
) -> None:
    (first,), (second,) = marked(README, "quick start"), marked(README, "own scheduler")
    part = section(README, "First steps")
    (yaml,) = blocks(part, "yaml")
    job = saved(yaml, tmp_path, part.text)
    (spec,) = read_specs(job)
    ((before, after),) = CHANGE.findall(LISTING.text)
    environment = {
        **os.environ,
        "OMEGA_DATABASE_URL": empty_database_url,
        "PYTHONPATH": str(installed),
    }
    with Shell(tmp_path, environment) as shell:
        said = shell.type_all(first)
        job.write_text(job.read_text().replace(before, after))
        told = shell.type_all(second)

    store = PostgresStore(empty_database_url)
    try:
        for number, kind in ((1, "batch"), (2, "roomiest")):
            status = store.job(number)

            assert status is not None
            assert kind == status.scheduler
            assert (spec.name, spec.tasks, spec.tasks) == (status.name, status.tasks, status.placed)
            assert status.state in (State.RUNNING, State.SUCCEEDED)
        assert [] == store.reports(), "processes that end cleanly leave the registry"
        assert [] == list(store.verify())
    finally:
        store.close()
    assert spec.name in said["omega jobs"]
    assert spec.name in said["omega job 1"]
    assert "1,000 machines" in said["omega status"]
    assert "roomiest:RoomiestScheduler" in told["omega scheduler list"]


@pytest.mark.slow
def test_the_scheduler_passes_the_tests_of_the_guide(installed: Path, tmp_path: Path) -> None:
    part = section(GUIDE, "Test it")
    (code,), (lines,) = blocks(part, "python"), marked(GUIDE, "own scheduler")
    test = saved(code, tmp_path, part.text)
    inherited = {name: v for name, v in os.environ.items() if not name.startswith("PYTEST")}
    environment = {
        **inherited,
        "PYTHONPATH": str(installed),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    with Shell(tmp_path, environment) as shell:
        said = shell.type(["python", "-m", "pytest", "-p", "no:cacheprovider", test.name])
        *_, simulated = shell.type_all(lines).values()

    assert re.search(r"=+ \d\d passed in ", said), said
    assert "service" in simulated


def test_the_guides_scheduler_orders_jobs_and_reads_its_setting(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(installed))
    (code,) = blocks(section(GUIDE, "Write your own"), "python")
    names: dict[str, type[Scheduler]] = {}
    exec(compile(code.text, GUIDE.path, "exec"), names)
    monkeypatch.delitem(sys.modules, "roomiest")
    small_first = names["SmallFirstScheduler"]
    jobs = [a_job(5, job=1), a_job(1, job=2), a_job(3, job=3)]

    ordered = small_first.configured({}).order(jobs, a_view(a_cell(machines=3)))

    assert [2, 3, 1] == [job.id for job in ordered]
    assert 16 == small_first.configured({}).jobs_per_transaction
    assert 4 == small_first.configured({"together": "4"}).jobs_per_transaction
    for wrong in ({"together": "0"}, {"together": "many"}, {"apart": "4"}):
        with pytest.raises(BadInput):
            small_first.configured(wrong)


def test_the_table_names_all_that_a_scheduler_may_override() -> None:
    told = {row[0].strip("`") for row in table(section(GUIDE, "Write your own"))}

    assert told == {name for name in vars(Scheduler) if not name.startswith("_")}
