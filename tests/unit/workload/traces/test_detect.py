"""A folder is recognised by its files."""

from pathlib import Path

import pytest

from omega.errors import BadInput
from omega.workload.traces.detect import LOADERS, detect


@pytest.mark.parametrize("name", sorted(LOADERS))
def test_a_folder_is_recognised_by_its_files(samples: Path, name: str) -> None:
    assert LOADERS[name] is detect(samples / name)


def test_a_folder_without_a_trace_is_told_what_each_loader_looks_for(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        detect(tmp_path)

    for name in LOADERS:
        assert name in caught.value.sentence
    assert "nodes.csv" in caught.value.sentence
    assert str(tmp_path) == caught.value.file


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.touch()

    with pytest.raises(BadInput, match="no folder"):
        detect(path)
