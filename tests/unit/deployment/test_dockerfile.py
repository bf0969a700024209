"""Of the Dockerfile, what `make test-containers` does not see by building the image."""

import re

from tests.architecture.tree import ROOT

COPY = re.compile(r"^COPY (.*)$", re.MULTILINE)


def test_docker_lets_through_only_what_is_copied() -> None:
    copies = COPY.findall((ROOT / "Dockerfile").read_text())
    copied = {source for copy in copies for source in copy.split()[:-1]}
    lines = (ROOT / ".dockerignore").read_text().splitlines()

    assert "*" in lines
    assert copied == {line.removeprefix("!") for line in lines if line.startswith("!")}
