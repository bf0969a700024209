"""Faults in pipelines: when stages are queued, what they cost, their keys, and how they end."""

from tests.mutants.mutant import Mutant, Part

SQL = "omega/store/postgres/functions/pipelines.sql"
QUEUE = "omega/store/postgres/functions/queue.sql"
VERIFY = "omega/store/postgres/functions/verify.sql"
MEMORY = "omega/store/memory/pipelines.py"
GRAPH = "omega/model/pipeline_graph.py"
KEYS = "omega/ordering/deadlines.py"
COSTS = "omega/ordering/stage_costs.py"
LEASES = "omega/framework/deadline_queue.py"
CANCEL = "omega/cli/pipeline/cancel.py"
REPORT = "omega/reports/pipelines.py"
OF_POSTGRES = ("tests/postgres/test_pipelines.py", "tests/contract/test_postgres_store.py")
OF_REFUSALS = ("tests/postgres/test_refused_arguments.py",)
OF_MEMORY = ("tests/contract/test_memory_store.py",)
OF_KEYS = (
    "tests/unit/model/test_pipeline_graph.py",
    "tests/unit/ordering",
    "tests/property/test_deadlines.py",
)
OF_LEASES = ("tests/unit/framework", "tests/simulation/test_deadline_orders.py")
OF_CANCEL = ("tests/postgres/test_cli_pipelines.py",)
OF_REPORT = ("tests/unit/reports/test_pipelines.py",)
mutant = Part("pipelines", OF_POSTGRES)
MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "one-parent-suffices",
        SQL,
        "queue_stages",
        "p.number = ANY (s.after) AND p.ended_as «IS DISTINCT FROM 'succeeded'»",
        "<> 'succeeded'",
        "A stage runs while a stage before it still does.",
    ),
    mutant(
        "stages-are-queued-twice",
        SQL,
        "queue_stages",
        "WHERE s.pipeline_id = it «AND s.job_id IS NULL» AND s.ended_as IS NULL",
        "",
        "What runs already becomes a second job as soon as another stage ends.",
    ),
    mutant(
        "pipeline-is-not-locked",
        SQL,
        "lock_pipelines",
        "ORDER BY id «FOR NO KEY UPDATE»;",
        "",
        "Of two parents that end at once none sees the other, and the pipeline stops for ever.",
    ),
    mutant(
        "failed-stages-are-followed",
        SQL,
        "end_stages",
        "IF ended.state «<> 'succeeded'» THEN",
        "= 'cancelled'",
        "A pipeline with a failed stage waits for ever.",
    ),
    mutant(
        "first-parents-alone-count",
        SQL,
        "end_stages",
        "ON s.pipeline_id = ended.pipeline_id AND «s.after @> ARRAY[b.number]»",
        "s.after[1] = b.number",
        "A stage whose second parent failed waits for ever.",
    ),
    mutant(
        "cost-of-failures-is-learnt",
        SQL,
        "end_stages",
        "WHERE s.pipeline_id = ANY (pipelines) AND s.ended_as «= 'succeeded'»"
        " AND w.took_ms IS NOT NULL",
        "IS NOT NULL",
        "Stages that fail at once make their template look cheap.",
    ),
    mutant(
        "cost-is-not-per-unit",
        SQL,
        "end_stages",
        "div(greatest(w.took_ms, 0) * ${picos_per_ms}::numeric, «s.units»)",
        "1",
        "The cost of a large input is taken for that of each unit.",
    ),
    mutant(
        "old-costs-are-forgotten",
        SQL,
        "end_stages",
        "SET picos = «div(${old_parts} * c.picos + excluded.picos, ${old_parts} + 1)»;",
        "excluded.picos",
        "One unusual run decides about the deadlines of all that follow.",
    ),
    mutant(
        "sum-instead-of-longest-path",
        SQL,
        "stage_deadlines",
        "below_ms[stage.after[parent] + 1] := «greatest(below_ms[stage.after[parent] + 1],"
        " cost_ms[stage.at] + below_ms[stage.at])»;",
        "below_ms[stage.after[parent] + 1] + cost_ms[stage.at] + below_ms[stage.at]",
        "Stages beside each other count as if they ran one after another.",
    ),
    mutant(
        "unknown-stages-cost-nothing",
        SQL,
        "stage_deadlines",
        "div(coalesce(c.picos, «mean») * s.units, ${picos_per_ms})",
        "0",
        "A stage that never ran is taken to need no time.",
    ),
    mutant(
        "costs-of-other-tenants",
        SQL,
        "stage_deadlines",
        "LEFT JOIN stage_cost c ON «c.tenant = of.tenant AND» c.template = of.name",
        "",
        "Pipelines of two tenants with one name share their costs.",
    ),
    mutant(
        "tokens-are-not-counted",
        SQL,
        "take_token",
        "SET interval_ms = lasts, interval = this, taken = before «+ 1»",
        "",
        "Every pipeline has the first token of its interval.",
    ),
    mutant(
        "tokens-of-the-last-interval-count",
        SQL,
        "take_token",
        "CASE WHEN had.interval_ms = lasts «AND had.interval = this» THEN had.taken",
        "",
        "A template that has used its tokens once never gets any again.",
    ),
    mutant(
        "tokens-of-the-past",
        SQL,
        "take_token",
        "this := «greatest(div(now_ms, lasts), CASE WHEN had.interval_ms = lasts"
        " THEN had.interval END)»;",
        "div(now_ms, lasts)",
        "Who waited for the tokens of a name takes those of an earlier interval again.",
    ),
    mutant(
        "other-intervals-forget-what-was-taken",
        SQL,
        "take_token",
        "WHEN «had.interval_ms <> lasts AND (had.interval + 1) * had.interval_ms > now_ms»"
        " THEN had.taken ELSE 0 END",
        "false",
        "Who changes the length of intervals has as many tokens as they like.",
    ),
    mutant(
        "keys-are-renewed-once",
        "omega/store/postgres/functions/lanes.sql",
        "agree_on_order",
        "WHERE o.scheduler = _scheduler AND o.name = _name «AND o.changed_at < clock_timestamp() -"
        " interval '${keys_renewed_s} s'») THEN",
        "",
        "A stage that was locked when the order changed keeps a key of the old order.",
    ),
    mutant(
        "cycles-are-accepted",
        SQL,
        "is_stage",
        "bool_and(omega.is_whole(a.it, 0, «_number - 1»))",
        "_number",
        "A stage that comes after itself is stored, and waits for ever.",
        OF_REFUSALS,
    ),
    mutant(
        "stages-of-other-tenants",
        SQL,
        "problem_with_pipeline",
        "WHERE p.problem IS NOT NULL «OR s.it #> '{job,tenant}' <> _it -> 'tenant'» ORDER BY",
        "",
        "A pipeline runs stages at the cost of another tenant's quota.",
        OF_REFUSALS,
    ),
    mutant(
        "keys-of-running-stages-only",
        SQL,
        "renew_keys",
        "AND j.scheduler = _scheduler AND j.state «NOT IN (${final_states})»",
        "= 'planning'",
        "Stages that wait keep the keys of the order before.",
    ),
    mutant(
        "pipelines-never-finish",
        SQL,
        "end_stages",
        "AND NOT EXISTS (SELECT FROM pipeline_stage s WHERE s.pipeline_id = p.id"
        " AND s.ended_as IS «NULL»)",
        "NOT NULL",
        "A pipeline that is over is shown as going on, and is never removed.",
    ),
    mutant(
        "lease-by-age-although-by-key",
        QUEUE,
        "lease_jobs",
        "ORDER BY precedence DESC, «order_key,» id LIMIT at_most(_jobs_max)",
        "",
        "An order of start deadlines serves by age.",
    ),
    mutant(
        "memory-one-parent-suffices",
        MEMORY,
        "PipelineRecord.may_be_queued",
        "is_open and «all»(end is StageEnd.SUCCEEDED for end in parents)",
        "any",
        "In the simulator a stage runs while a stage before it still does.",
        OF_MEMORY,
    ),
    mutant(
        "memory-failed-stages-are-followed",
        MEMORY,
        "MemoryPipelines._end_stages",
        "if «end is not StageEnd.SUCCEEDED»:",
        "False",
        "In the simulator a pipeline with a failed stage waits for ever.",
        OF_MEMORY,
    ),
    mutant(
        "memory-keys-of-the-order-before",
        MEMORY,
        "MemoryPipelines._note_order",
        "job.order_key = «self._key(job, order)»",
        "job.order_key",
        "In the simulator stages that wait keep the keys of the order before.",
        OF_MEMORY,
    ),
    mutant(
        "critical-path-is-a-sum",
        GRAPH,
        "PipelineGraph.below_ms",
        "below[parent] = «max(below[parent], cost_ms[name] + below[name])»",
        "below[parent] + cost_ms[name] + below[name]",
        "Stages beside each other count as if they ran one after another.",
        OF_KEYS,
    ),
    mutant(
        "laxity-without-own-cost",
        KEYS,
        "start_deadlines",
        "target_ms «- cost_ms[name]» - below[name]",
        "",
        "A stage that takes long is started too late.",
        OF_KEYS,
    ),
    mutant(
        "more-tokens-than-the-rate",
        KEYS,
        "SourceTokens.take",
        "if taken «>=» self.rate:",
        ">",
        "A source has one token more than its rate in each interval.",
        OF_KEYS,
    ),
    mutant(
        "mean-of-known-costs-is-zero",
        COSTS,
        "stage_costs_ms",
        "picos.get(name, «mean») * units[name] // PICOS_PER_MS",
        "0",
        "A stage that never ran is taken to need no time.",
        OF_KEYS,
    ),
    mutant(
        "full-cell-is-leased",
        LEASES,
        "DeadlineQueue.jobs_max",
        "return «min(wanted, max(self._left, self._looked_at()) if looks else self._left)»",
        "wanted",
        "Replicas hold jobs that find no room, and jobs with smaller keys pass them by.",
        OF_LEASES,
    ),
    mutant(
        "retries-hide-smaller-sizes",
        LEASES,
        "DeadlineQueue.took",
        "«self._sizes.pop(job.id, None)»",
        "self._sizes = {}",
        "A large stage that finds no room stops its schedulers.",
        OF_LEASES,
    ),
    mutant(
        "nobody-looks-past-large-stages",
        LEASES,
        "DeadlineQueue._looked_at",
        "self._look_gap_s = min(2 * self._look_gap_s, LOOK_S_MAX)\nreturn «look_at»",
        "0",
        "Where large stages come first, small ones wait although they have room.",
        OF_LEASES,
    ),
    mutant(
        "jobs-on-a-full-cell-are-delayed",
        LEASES,
        "DeadlineQueue.disposed",
        "return «replace(end, delay_ms=0)»",
        "end",
        "The most urgent job waits for its retry while others take the room.",
        OF_LEASES,
    ),
    mutant(
        "cancel-reads-once",
        CANCEL,
        "cancel_pipeline",
        "«while» pipeline.finished_ms is None:",
        "if",
        "A stage that follows while its pipeline is cancelled runs.",
        OF_CANCEL,
    ),
    mutant(
        "late-though-begun",
        REPORT,
        "PipelineReport.of",
        "is_late=«waits and» start_ms < now_ms",
        "",
        "A stage that runs, or is over, is shown as late.",
        OF_REPORT,
    ),
)
