"""Submissions in the wire form, with fields written otherwise."""

from typing import Final

WORK: Final = '{"kind": "ResNet-18 (batch size 64)", "steps": 120000}'


def job(**fields: str) -> str:
    """Return a submission of one job with these fields written otherwise."""
    said = {
        "name": '"j"',
        "scheduler": '"batch"',
        "tenant": '"t"',
        "precedence": "0",
        "minimum": "0",
        "groups": "[" + group() + "]",
        **fields,
    }
    return "submit_jobs('[" + an_object(said) + "]')"


def pipeline(**fields: str) -> str:
    """Return a submission of one pipeline with these fields written otherwise."""
    said = {
        "name": '"p"',
        "tenant": '"t"',
        "within_ms": "1000",
        "tokens": "null",
        "stages": "[" + stage() + "]",
        **fields,
    }
    return "submit_pipelines('[" + an_object(said) + "]')"


def stage(**fields: str) -> str:
    a_job = job()
    its_job = a_job[a_job.index("[") + 1 : -len("]')")]
    return an_object({"name": '"s"', "after": "[]", "units": "1", "job": its_job, **fields})


def group(**fields: str) -> str:
    said = {
        "tasks": "1",
        "cpu_milli": "1",
        "memory_mib": "0",
        "disk_mib": "0",
        "gpus": "0",
        "gpu_slices": "1000",
        "duration_ms": "null",
        "constraints": "[]",
        "spread_over": "null",
        "different_machines": "false",
        **fields,
    }
    return an_object(said)


def constraint(
    attribute: str = '"zone"', operator: str = '"in"', values: str = '["z1"]', **more: str
) -> str:
    its = an_object({"attribute": attribute, "operator": operator, "values": values, **more})
    return job(groups="[" + group(constraints=f"[{its}]") + "]")


def an_object(fields: dict[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": {value}' for name, value in fields.items()) + "}"


def elastic(*phases: str, **fields: str) -> str:
    """Return a submission of an elastic job with these phases, and fields written otherwise."""
    at_most = fields.pop("at_most", "9")
    listed = fields.pop("phases", f"[{', '.join(phases)}]")
    workers = an_object({"at_most": at_most, "phases": listed})
    return job(**{"workers": workers, **fields})


def a_phase(**fields: str) -> str:
    """Return a phase with these fields written otherwise."""
    said = {"name": '"a"', "activities": "1", "duration_ms": "1", "after": "null", **fields}
    return an_object(said)
