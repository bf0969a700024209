"""Faults in rounds and recalls: who plans running jobs, and what becomes of them."""

from tests.mutants.in_functions import QUEUE, TASKS, mutant
from tests.mutants.mutant import Mutant, Part

ROUNDS = "omega/store/postgres/functions/rounds.sql"
PRECEDENCE = "schedulers/ml_gpu/precedence.py"
WEIGHTS = "schedulers/ml_gpu/weights.py"
LIVE = "schedulers/ml_gpu/live.py"
training = Part("training", ("tests/unit/schedulers/ml_gpu/test_idle_gangs.py",))
sharing = Part("training", ("tests/unit/schedulers/ml_gpu/test_precedence_and_weights.py",))

MUTANTS: tuple[Mutant, ...] = (
    training(
        "gang-that-trains-falls-for-a-job-beside-it",
        "schedulers/ml_gpu/training_table.py",
        "TrainingTable.without_rate",
        "hopeless = self.fits.any(axis=1) & ~rate.any(axis=1)",
        "hopeless = self.fits.any(axis=1)",
        "A job that trains loses its GPUs to one that is not planned by rounds.",
    ),
    training(
        "idle-gang-falls-twice",
        "schedulers/ml_gpu/idle_gangs.py",
        "in_place_of_idle",
        "left = sorted(set(idle.tolist()) - fallen)",
        "left = sorted(set(idle.tolist()))",
        "GPUs that a round has just given to a gang are given to another job, and one is refused.",
    ),
    sharing(
        "lowest-precedence-first",
        PRECEDENCE,
        "share_by_precedence",
        "from_the_highest = np.unique(precedence)«[::-1]»",
        "",
        "Who is urgent trains on what others leave.",
    ),
    sharing(
        "gpus-are-promised-twice",
        PRECEDENCE,
        "share_by_precedence",
        "left -= «problem.size[jobs] @ share[jobs]»",
        "0",
        "Jobs of a low precedence are promised GPUs that they never get.",
    ),
    sharing(
        "who-runs-keeps-its-gpus-from-those-above",
        PRECEDENCE,
        "_kept",
        "if «free[type_] + NEARLY_NOTHING < problem.size[jobs[job]]»:",
        "False",
        "A policy that moves nobody promises GPUs twice.",
    ),
    sharing(
        "weight-of-the-tenant-alone",
        WEIGHTS,
        "job_weights",
        "«_own(job) *» tree.weight(job.spec.tenant)",
        "",
        "What a user says of the weight of a job changes nothing.",
    ),
    sharing(
        "parents-count-for-nothing",
        WEIGHTS,
        "tenant_fractions",
        "fraction[children] = «fraction[node] *» weight / weight.sum()",
        "",
        "A team of a small organisation has as much as a whole large one.",
    ),
    sharing(
        "newcomers-wait-for-those-below",
        PRECEDENCE,
        "outranks_promised",
        "precedence[waits].max() > precedence[is_promised].«min»()",
        "max",
        "A job that is more urgent than most waits for the next reset.",
    ),
    sharing(
        "newcomers-never-wait",
        PRECEDENCE,
        "outranks_promised",
        "waits = can_run «& ~is_promised»",
        "",
        "Shares are promised anew in every round, and gangs move all the time.",
    ),
    sharing(
        "entities-of-equal-weight",
        LIVE,
        "_problem",
        "entity_weight=«tenant_fractions(tenants.tolist(), state.tenants)»",
        "tenant_fractions(tenants.tolist(), ())",
        "The tree of tenants changes nothing.",
    ),
    sharing(
        "ages-by-another-clock",
        "schedulers/ml_gpu/record.py",
        "Record.measured",
        "return replace(self, «speed_up=min(max(speed_up, SPEED_UP_MIN), 1 / SPEED_UP_MIN)»)",
        "",
        "Under a speed-up finish-time fairness takes old jobs for new ones.",
        ("tests/unit/schedulers/ml_gpu/test_record.py",),
    ),
    mutant(
        "round-begun-early",
        ROUNDS,
        "begin_round",
        "<= clock_timestamp() RETURNING",
        "<= clock_timestamp() + interval '1 day' RETURNING",
        "Two replicas plan the same GPUs at once.",
    ),
    mutant(
        "past-round-notes",
        ROUNDS,
        "note_round",
        "AND r.number = _number AND (r.login = session_user OR is_owner()); RETURN FOUND",
        "AND r.number >= _number AND (r.login = session_user OR is_owner()); RETURN FOUND",
        "A scheduler that was thought dead overwrites what its successor knows.",
    ),
    mutant(
        "rounds-of-one-login-told-without-end",
        ROUNDS,
        "read_rounds",
        "t.bytes <= 4 * ${memo_bytes_max}",
        "t.bytes >= 0",
        "One login makes every `omega status` take a minute.",
        tests=("tests/postgres/test_rounds_told.py",),
    ),
    mutant(
        "recall-of-other-kinds",
        ROUNDS,
        "recall_jobs",
        "AND j.scheduler = of.scheduler AND j.parent IS NULL AND (",
        "AND j.parent IS NULL AND (",
        "One kind of scheduler moves the jobs of another.",
    ),
    mutant(
        "recall-of-leased-jobs",
        ROUNDS,
        "recall_jobs",
        "AND j.lease_holder = of.holder_before AND",
        "AND",
        "A job is taken from whoever plans it now.",
    ),
    mutant(
        "recalled-job-in-line-though-it-runs",
        QUEUE,
        "hand_back_jobs",
        "state = «CASE WHEN isempty(j.unplaced) THEN 'running' ELSE 'pending' END», "
        "lease_token = NULL, not_before = clock_timestamp() + lease_length(w.delay_ms)",
        "'pending'",
        "A job that runs is planned anew, for tasks that it has not got.",
    ),
    mutant(
        "expired-recall-in-line-though-it-runs",
        QUEUE,
        "rescue_jobs",
        "state = «CASE WHEN isempty(j.unplaced) THEN 'running' ELSE 'pending' END», "
        "lease_token = NULL, not_before = clock_timestamp() FROM expired",
        "'pending'",
        "When a scheduler by rounds dies, all that it runs is planned anew.",
    ),
    mutant(
        "recalled-job-never-over",
        TASKS,
        "release_tasks",
        "state = CASE WHEN «j.ended + e.tasks = j.tasks» THEN CASE WHEN j.failed",
        "j.state = 'running' AND j.ended + e.tasks = j.tasks",
        "A job whose last task ends while it is planned is never over.",
    ),
)
