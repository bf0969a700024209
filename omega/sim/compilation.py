"""Whether a simulation is compiled: by `--compiled`, `--no-compiled`, or its size.

Goal     Compile by default where that is possible and saves time.
Promise  A request to compile what cannot be compiled is refused with the reason before the run.
Source   docs/decisions/0034-compiled-loops.md.
"""

from typing import Final

from omega.errors import BadInput, SettingsError
from omega.sim.cell import compiler_is_installed

OPTION: Final = "--compiled"
FROM_JOBS: Final = 5_000
"""From so many jobs on, compiled loops save the half second that loading them takes."""


def refuse_uncompilable(*, audit: bool, live: bool, machines_change: bool) -> None:
    """Raise BadInput for a run that is never compiled, SettingsError without a compiler."""
    which = _never_compiled(audit=audit, live=live, machines_change=machines_change)
    if which is not None:
        raise BadInput(f"{which} is not compiled", field=OPTION)
    if not compiler_is_installed():
        raise SettingsError([f"{OPTION} needs omega-scheduler[fast] to be installed"])


def is_worth_compiling(jobs: int, *, audit: bool, live: bool, machines_change: bool) -> bool:
    """Return whether a run of so many jobs is compiled when no option says so."""
    which = _never_compiled(audit=audit, live=live, machines_change=machines_change)
    return which is None and jobs >= FROM_JOBS and compiler_is_installed()


def _never_compiled(*, audit: bool, live: bool, machines_change: bool) -> str | None:
    never = {
        "an audited run": audit,
        "a run with --queue live": live,
        "a run whose machines change": machines_change,
    }
    return next((run for run, is_so in never.items() if is_so), None)
