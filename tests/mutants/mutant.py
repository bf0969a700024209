"""A mutant: one small fault, planted on purpose, that some test has to notice."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One fault in one place."""

    name: str
    """What is wrong, in words that can be typed: `judge.lease-not-checked`."""
    file: str
    """Where it is planted, seen from the project's root."""
    before: str
    """What stands there, once in the file."""
    after: str
    why: str
    """What users would suffer from it, in one sentence."""
    tests: tuple[str, ...] = field(repr=False)
    """Files and folders of tests, in the order in which they are asked."""

    def plant(self, root: Path) -> None:
        """Write the fault into the tree of files under `root`. Raises ValueError if it cannot."""
        path = root / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.before) != 1:
            found = text.count(self.before)
            raise ValueError(f"{self.name}: {self.file} holds it {found} times: {self.before!r}")
        path.write_text(text.replace(self.before, self.after), encoding="utf-8")
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
            compiled.unlink()  # Python would take it for this text's, were it as old and as long
