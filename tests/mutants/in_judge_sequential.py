"""Faults in what claims of a commit in Postgres do to one another: gangs and exchanges."""

from tests.mutants.in_commit import COMMIT, JUDGE_SEQUENTIAL, PARTS, mutant

GANGS = (
    mutant(
        "minimum-of-the-job-ignored",
        COMMIT,
        "commit_claims",
        "greatest(j.minimum, l.minimum - l.placed)",
        "j.minimum",
        "Half a gang runs, and waits for the other half while it holds its machines.",
    ),
    mutant(
        "minimum-of-the-transaction-ignored",
        COMMIT,
        "commit_claims",
        "greatest(j.minimum, l.minimum - l.placed)",
        "l.minimum - l.placed",
        "A scheduler that asked for more than there are claims is granted them.",
    ),
    mutant(
        "minimum-of-the-job-ignored-in-order",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "greatest(_minimums[j], minimum[j] - placed[j])",
        "_minimums[j]",
        "Half a gang runs, and waits for the other half while it holds its machines.",
    ),
    mutant(
        "evicted-tasks-still-count-for-the-gang",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "live[victim] := false; «placed[victim_party[victim]] := "
        "placed[victim_party[victim]] - 1;»",
        "",
        "A gang that lost tasks in the same transaction runs below its minimum.",
    ),
    mutant(
        "grown-gang-still-lacks-its-minimum",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "minimum[j] - placed[j])",
        "minimum[j])",
        "A gang that runs cannot grow task by task.",
    ),
    mutant(
        "broken-gang-keeps-amounts",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "IF granted > 0 AND granted < needed THEN «free := before.free;»",
        "",
        "Room that nobody has is lost to the jobs behind a broken gang.",
    ),
    mutant(
        "broken-gang-keeps-what-it-evicted",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "«fallen := before.fallen;» running := before.running; budget := before.budget; FOR c IN",
        "",
        "Tasks are ended for a gang that never ran.",
    ),
    mutant(
        "broken-gang-keeps-its-victims-uncounted",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "IF granted > 0 AND granted < needed THEN free := before.free; «placed := before.placed;»",
        "",
        "Who was spared is counted as lost: its gang falls to the next eviction.",
    ),
    mutant(
        "broken-gang-told-where-it-would-have-landed",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "landed[c] := _machines[c];",
        "",
        "An outcome names machines on which nothing was granted.",
    ),
)

EXCHANGES = (
    mutant(
        "alternates-tried-by-those-that-stand",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "IF verdict NOT IN (${accepted}, ${lease_lost}, ${already_placed}) AND",
        "IF verdict NOT IN (${lease_lost}, ${already_placed}) AND",
        "A claim that stands where it wanted to is sent elsewhere.",
    ),
    mutant(
        "running-task-sent-to-an-alternate",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "NOT IN (${accepted}, ${lease_lost}, ${already_placed}) AND NOT is_placed",
        "NOT IN (${accepted}, ${lease_lost}, ${already_placed})",
        "A task that could not move runs in two places.",
    ),
    mutant(
        "tasks-not-moved-from-elsewhere",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "OR victim_party[victim] = j)",
        ")",
        "A task cannot move to a machine on which it takes nobody's place.",
    ),
    mutant(
        "alternates-counted-twice",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "«place := other_at[o];» landed[c] := _other_machines[o]; landed_shapes[c] := "
        "_other_shapes[o];",
        "place := other_at[o]; free[(place - 1) * ${kinds} + 1] := free[(place - 1) * "
        "${kinds} + 1] - _amounts[(_other_shapes[o] - 1) * ${kinds} + 1];",
        "One task takes the cores of two on its alternate.",
        borrows=(
            JUDGE_SEQUENTIAL,
            "free[(place - 1) * ${kinds} + kind] := free[(place - 1) * ${kinds} + kind] "
            "- _amounts[(landed_shapes[c] - 1) * ${kinds} + kind];",
        ),
    ),
    mutant(
        "evicts-though-it-lands-on-an-alternate",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "IF verdict NOT IN (${accepted}, ${lease_lost}, ${already_placed}) THEN",
        "IF verdict IN (${lease_lost}, ${already_placed}) THEN",
        "Tasks are ended to make room that nobody takes.",
    ),
    mutant(
        "equal-precedence-evicted",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "< precedence[j] OR",
        "<= precedence[j] OR",
        "Two jobs of one precedence evict each other for ever.",
    ),
    mutant(
        "evicts-on-other-machines",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "AND (victim_at[victim] = place OR victim_party[victim] = j)",
        "",
        "Tasks are ended where that makes no room.",
    ),
    mutant(
        "room-elsewhere-counted-here",
        PARTS,
        "fits",
        "IF _victim_at[victim] = _place THEN",
        "IF victim > 0 THEN",
        "A commit for room that a gang held elsewhere is aborted by a CHECK.",
    ),
    mutant(
        "victim-named-twice-counted-twice",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "AND NOT victim = ANY (falling)",
        "",
        "A claim makes room by naming one task twice.",
    ),
    mutant(
        "victim-evicted-by-two-claims",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "AND live[victim] AND",
        "AND",
        "Two claims share the room of one task.",
    ),
    mutant(
        "fallen-gang-whose-others-stay",
        PARTS,
        "with_their_gangs",
        "- named.tasks < _minimum[named.party]",
        "- named.tasks < 0",
        "What is left of a gang holds its machines and does nothing.",
    ),
    mutant(
        "gang-evicted-that-was-just-granted-to",
        JUDGE_SEQUENTIAL,
        "judge_claims",
        "coalesce(stands[victim_party[victim]], false)",
        "false",
        "A transaction grows a gang and breaks it.",
    ),
)

MUTANTS = (*GANGS, *EXCHANGES)
