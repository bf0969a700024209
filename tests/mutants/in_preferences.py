"""Faults in preferences and patience: where tasks prefer to run, and how long they wait for it."""

from tests.mutants.mutant import Mutant, Part

PATIENCE = "omega/placement/patience.py"
ATTEMPT = "omega/framework/attempt.py"
OF_PATIENCE = ("tests/unit/placement/test_patience.py",)
OF_SPECS = ("tests/attack/test_refused_jobs.py",)
mutant = Part("preferences", ("tests/unit/placement/test_preferences.py",))
MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "least-preferred-first",
        "omega/placement/preferences.py",
        "choose_preferred",
        "for weight in np.unique(met)«[::-1]»:",
        "",
        "Tasks run where their users want them least.",
    ),
    mutant(
        "weights-do-not-count",
        "omega/placement/preferences.py",
        "weights_met",
        "met += «preference.weight *» meets(room.view, preference.constraint)[room.at]",
        "",
        "Two small wishes beat a large one.",
    ),
    mutant(
        "drawn-machines-are-not-compared",
        "omega/placement/groups.py",
        "draw_groups",
        "if «job.spec.groups[group].preferences»:",
        "False",
        "Batch tasks with preferences run anywhere.",
    ),
    mutant(
        "plain-with-preferences",
        "omega/model/jobs.py",
        "TaskGroup.is_plain",
        "asks_more = self.gpus or self.constraints «or self.preferences»",
        "",
        "Simulations place tasks by loops that know no preferences.",
    ),
    mutant(
        "patient-for-ever",
        PATIENCE,
        "while_patient",
        "_strict(group) if «group.patience_ms > job.age_ms» else group",
        "group.patience_ms",
        "A group waits as long as the most patient group of its job.",
        OF_PATIENCE,
    ),
    mutant(
        "waits-for-what-cannot-come",
        PATIENCE,
        "while_patient",
        "return job if «found is not None and found.reason.is_permanent» else strict",
        "False",
        "A job with a misspelt preference waits out its patience beside free machines.",
        OF_PATIENCE,
    ),
    mutant(
        "placed-groups-wait",
        PATIENCE,
        "patience_left_ms",
        "for group in «waiting_groups(job)»",
        "range(len(job.spec.groups))",
        "A job is called patient of which only impatient tasks wait.",
        OF_PATIENCE,
    ),
    mutant(
        "patient-jobs-are-parked",
        "omega/framework/disposition.py",
        "disposition",
        "reason = «None if attempted.patience_ms else» _reason_to_park(",
        "",
        "Nothing wakes a job whose patience is over.",
        OF_PATIENCE,
    ),
    mutant(
        "late-after-patience",
        "omega/framework/disposition.py",
        "disposition",
        "wait_ms = «min(wait_ms, attempted.patience_ms)»",
        "wait_ms",
        "A job waits longer than its patience.",
        OF_PATIENCE,
    ),
    mutant(
        "patient-jobs-evict",
        ATTEMPT,
        "_make_way",
        "if «each.is_patient or» len(mine) == len(each.to_place.unplaced):",
        "",
        "Others are evicted for a mere preference.",
        OF_PATIENCE,
    ),
    mutant(
        "weights-of-any-size",
        "omega/store/postgres/functions/specs.sql",
        "are_preferences",
        "AND omega.is_whole(p.it -> 'weight', 1, ${preference_weight_max})",
        "",
        "A forged preference stops every scheduler that leases the job.",
        OF_SPECS,
    ),
    mutant(
        "patience-for-nothing",
        "omega/store/postgres/functions/specs.sql",
        "is_group",
        "(_it -> 'patience_ms' = '0' OR"
        " «jsonb_array_length(coalesce(_it -> 'preferences', '[]')) > 0»)",
        "true",
        "A forged job is parked as unreadable by whoever leases it.",
        OF_SPECS,
    ),
)
