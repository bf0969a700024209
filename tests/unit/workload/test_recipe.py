"""The recipe gives the published job lists to the byte."""

import hashlib

import pytest

from omega.workload.recipe import job_list
from omega.workload.synthetic import W1, W2, TwoClasses


@pytest.mark.parametrize(
    ("laws", "sha256"),
    [
        (W1, "f049a8313725e82eed707538357ac50c8425fd774f24455d59cf67d29f2483ee"),
        (W2, "04315957006012389a0e69c86f0a367fe54832f7cbf29ca7aef89fe77b523d1c"),
    ],
    ids=["W1", "W2"],
)
def test_the_recipe_gives_the_published_bytes(laws: TwoClasses, sha256: str) -> None:
    assert sha256 == hashlib.sha256(job_list(laws).encode()).hexdigest()


def test_w2_has_the_published_numbers_of_jobs_and_tasks() -> None:
    rows = [line.split(",") for line in job_list(W2).splitlines()[1:]]

    assert 4_247 == sum(row[1] == "Batch" for row in rows)
    assert 352 == sum(row[1] == "Service" for row in rows)
    assert 91_378 == sum(int(row[3]) for row in rows)
