"""Where the traces are: samples of our own, and the published files where they are."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def samples() -> Path:
    return ROOT / "tests" / "samples"


@pytest.fixture
def published() -> Path:
    """The folder that holds one folder a trace; the test is skipped where there is none."""
    said = os.environ.get("OMEGA_TRACES")
    folder = Path(said) if said else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the published traces are not here; OMEGA_TRACES names their folder")
    return folder
