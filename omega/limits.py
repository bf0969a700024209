"""Upper limits of loops, waits, messages and names, in one place.

Goal     Bound every loop, wait, message and name, so that no input makes a commit slow for others.
Promise  The limits are consistent: a contradiction fails at import, not in production. Developers
         choose limits, which are asserted. Operators choose settings (omega.config), which are
         rejected with an error.
Source   TigerBeetle's constants. Units come last in a name, `_max` last of all.
"""

from dataclasses import dataclass

INT4_MAX = 2**31 - 1
"""The greatest number that a Postgres `integer` holds."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Upper bounds that hold whatever the settings say."""

    tries_max: int = 16
    """Passes through the loop in one attempt at one job."""
    claims_per_transaction_max: int = 10_000
    jobs_per_transaction_max: int = 256
    lock_wait_ms_max: int = 2_000
    """How long a commit waits for a row lock."""
    commit_ms_max: int = 5_000
    """How long a commit takes in all: waiting for locks, judging and writing."""
    lease_ms_max: int = 24 * 60 * 60 * 1_000
    """How long one lease lasts before it must be renewed."""
    window_ms_max: int = 10 * 365 * 24 * 60 * 60 * 1_000
    """Ten years: how far back a call may ask, or how old a kept answer may be."""
    order_ms_max: int = 60 * 1_000
    """How long replicas agree on an order of their queue at a time, however long a lease lasts."""
    reclaim_ms_max: int = 10_000
    """How long one lease of the right to reclaim lasts."""
    lease_bytes_max: int = 8 * 2**20
    """Total length of the wire forms of large jobs that one call leases or reads. The first job is
    always included."""
    wire_bytes_small: int = 2 * 2**10
    """A job whose wire form is at most this long is small: it does not count towards
    `lease_bytes_max`."""
    memo_bytes_max: int = 4 * 2**20
    """The memo that a round keeps for the next one, as JSON."""
    facts_bytes_max: int = 16 * 2**10
    """The facts that a process reports, as JSON."""
    json_depth_max: int = 16
    """Levels of objects and arrays in a memo or in facts; the outermost object is the first."""
    processes_per_login_max: int = 1_000
    """Processes that report under one login, and processes that lease turns under one login."""
    kinds_per_login_max: int = 100
    """Kinds of scheduler whose last round was begun by one login, and kinds on whose order of the
    queue it agreed last."""
    occupied_machines_max: int = 1_000
    """Machines of which one call reads who runs there, to look for victims."""
    holders_max: int = 10_000
    """Tenants, and kinds of schedulers, of which one call returns what they held: the largest."""
    tasks_per_release_max: int = 1_000
    """Tasks that one call of a node ends, or asks about."""

    jobs_per_submission_max: int = 10_000
    tasks_per_job_max: int = 100_000
    task_groups_per_job_max: int = 64
    constraints_per_group_max: int = 32
    values_per_constraint_max: int = 1_000
    phases_per_job_max: int = 2
    activities_max: int = 1_000_000
    """Activities of one phase of an elastic job."""
    stages_per_pipeline_max: int = 64
    stage_units_max: int = 10**12
    """The size of the input of a stage."""
    token_rate_max: int = 1_000_000
    """Tokens of one template in one interval."""
    pipelines_per_submission_max: int = 1_000
    wire_bytes_max: int = 128 * 2**10
    """One job in the wire form, as JSON."""
    submission_bytes_max: int = 64 * 2**20
    """All jobs submitted in one call, in the wire form."""
    name_length_max: int = 200
    detail_length_max: int = 1_000
    """The text that explains to users why a job is parked."""
    file_bytes_max: int = 64 * 2**20
    """A file of jobs or of machines that a person writes."""
    yaml_values_max: int = 1_000_000
    """Keys and values in such a file if it is YAML."""
    yaml_depth_max: int = 16
    """Nesting depth of lists and mappings in such a file."""
    amount_max: int = INT4_MAX
    """One task's demand, or one machine's capacity, of one kind."""
    preference_weight_max: int = 100
    """Weight of one preference of a task group, as in Kubernetes."""
    duration_ms_max: int = 100 * 366 * 24 * 60 * 60 * 1_000
    """A century. A task that is to run longer has no duration and runs until it is cancelled."""
    path_length_max: int = 4_096
    """The path of a file or folder that a job names, as in Linux."""
    address_length_max: int = 253
    """The name of a host, as in DNS (RFC 1035)."""
    command_words_max: int = 1_000
    """The program of a task and its arguments."""
    variables_max: int = 1_000
    """Environment variables of one program."""
    restarts_max: int = 1_000
    stop_grace_ms_max: int = 60 * 60 * 1_000
    """The longest time from the signal that asks a program to stop to the one that kills it."""
    check_timeout_ms_max: int = 60 * 60 * 1_000
    check_failures_max: int = 1_000
    output_bytes_kept: int = 64 * 2**10
    """The end of each output of a task that the store keeps."""
    machines_per_login_max: int = 1_000
    """Machines that one login registers by itself."""
    catalogue_bytes_max: int = 4 * 2**20
    """The names and values of all attributes, as JSON, beyond which no login of a node adds to
    them."""
    judged_per_read_max: int = 5_000
    """Transactions of which one call returns who was granted and refused what."""
    judged_claims_max: int = 100_000
    """Claims after which such a call returns no further transaction."""
    lanes_max: int = 10_000
    """Lanes of the queue of a kind of scheduler that one call returns; tenants that are set."""
    sum_ms_max: int = 10_000
    """How long it counts as taking at most to sum up what tenants use."""
    queue_lines_max: int = 1_000
    """Lines of the queue in sums: of a kind, a tenant and what is waited for."""
    web_streams_max: int = 100
    """Browsers that one page tells of changes at a time."""
    web_connections_max: int = 512
    """Connections to one page at a time, streams among them."""
    web_path_max: int = 256
    """Bytes of the path of a request to the page ..."""
    web_query_max: int = 4_096
    """... and of its query."""
    steps_max: int = 10**15
    """Steps of one job: a million each second for thirty years."""
    work_weight_max: int = 1_000
    """The weight of a job in steps, where GPUs are shared by weights."""
    tenant_weight_max: int = 10_000
    tenant_depth_max: int = 8
    """Levels of tenants: one without a parent is on the first."""

    def __post_init__(self) -> None:
        for name, limit in vars(self).items():
            assert limit > 0, f"{name} must be positive"

        # A commit that waits for locks must still have time to judge and write.
        assert self.lock_wait_ms_max < self.commit_ms_max
        # Replicas that renew an agreement each second have it for as long as they run.
        assert self.commit_ms_max < self.order_ms_max <= self.lease_ms_max
        # A transaction holds at least one claim of each of its jobs.
        assert self.jobs_per_transaction_max <= self.claims_per_transaction_max
        # A call that leases by bytes can take at least one job of any size.
        assert self.wire_bytes_small <= self.wire_bytes_max <= self.lease_bytes_max
        assert self.wire_bytes_max <= self.submission_bytes_max
        # Each group has at least one task.
        assert self.task_groups_per_job_max <= self.tasks_per_job_max
        # Amounts travel as 32-bit numbers when many rows are packed into one value...
        assert self.amount_max <= INT4_MAX
        # ...and sums of them over a transaction, or over one job, stay within 64 bits.
        assert self.amount_max * self.claims_per_transaction_max < 2**63
        assert self.amount_max * self.tasks_per_job_max < 2**63
        # The time that workers take for all activities of a job, in milliseconds, fits 64 bits.
        assert self.phases_per_job_max * self.activities_max * self.duration_ms_max < 2**63
        # Streams leave connections for requests.
        assert self.web_streams_max < self.web_connections_max
        # A file with as many jobs as one submission may hold leaves each fifty keys and values.
        assert 50 * self.jobs_per_submission_max <= self.yaml_values_max
        # Rates are floating-point numbers, which hold whole steps exactly below this.
        assert self.steps_max < 2**53


LIMITS = Limits()
"""The limits in force."""
