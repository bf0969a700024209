"""All mutants, in the order of the page."""

from tests.mutants import (
    in_agents,
    in_alternates,
    in_audits,
    in_commit,
    in_compiled_loops,
    in_elastic,
    in_evictions,
    in_functions,
    in_incarnations,
    in_judge_sequential,
    in_memory,
    in_numpy,
    in_ordering,
    in_plans,
    in_processes,
    in_progress,
    in_quotas,
    in_records,
    in_refusals,
    in_rounds,
    in_simulator,
    in_turns,
    in_victims,
    in_views,
    in_waiting,
    in_web,
    in_why,
)
from tests.mutants.mutant import Mutant
from tests.mutants.page import part_of

_ALL: tuple[Mutant, ...] = (
    *in_numpy.MUTANTS,
    *in_memory.MUTANTS,
    *in_commit.MUTANTS,
    *in_judge_sequential.MUTANTS,
    *in_victims.MUTANTS,
    *in_evictions.MUTANTS,
    *in_alternates.MUTANTS,
    *in_views.MUTANTS,
    *in_functions.MUTANTS,
    *in_quotas.MUTANTS,
    *in_rounds.MUTANTS,
    *in_elastic.MUTANTS,
    *in_turns.MUTANTS,
    *in_waiting.MUTANTS,
    *in_ordering.MUTANTS,
    *in_incarnations.MUTANTS,
    *in_refusals.MUTANTS,
    *in_progress.MUTANTS,
    *in_agents.MUTANTS,
    *in_audits.MUTANTS,
    *in_why.MUTANTS,
    *in_plans.MUTANTS,
    *in_records.MUTANTS,
    *in_web.MUTANTS,
    *in_processes.MUTANTS,
    *in_simulator.MUTANTS,
    *in_compiled_loops.MUTANTS,
)
_PARTS = list(dict.fromkeys(part_of(mutant) for mutant in _ALL))

MUTANTS = tuple(sorted(_ALL, key=lambda mutant: _PARTS.index(part_of(mutant))))
"""All of them; those of one part of the project together."""
