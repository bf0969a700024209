"""The facts on a machine and a checkout that tell whether two documents are comparable."""

import os
import subprocess
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]


def of_machine() -> dict[str, object]:
    """Return the facts on the machine, and its load before the benchmark."""
    one, five, _ = os.getloadavg()
    return {
        "processor": processor_model(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "load_before": [round(one, 2), round(five, 2)],
        "revision": revision_of(ROOT),
    }


def processor_model() -> str | None:
    """Return the processor's model name; None where the system does not give it."""
    told = Path("/proc/cpuinfo")
    if not told.exists():
        return None
    lines = told.read_text(encoding="utf-8", errors="replace").splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else None


def revision_of(checkout: Path) -> str | None:
    """Return the checkout's revision as git describes it; None without git."""
    try:
        told = subprocess.run(
            ["git", "-C", checkout, "describe", "--always", "--dirty", "--tags"],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return None
    return told.stdout.strip() or None
