"""Faults in what is noticed of databases that lose commits, and of poolers."""

from tests.mutants.mutant import Part

SQL = "omega/store/postgres/functions/incarnations.sql"
CONDITION = "omega/store/postgres/incarnations.py"
READING = "omega/store/postgres/functions/reading.sql"
LINK = "omega/store/postgres/connection.py"
SURVIVAL = "omega/store/postgres/health/survival.py"
CONNECTING = "omega/store/postgres/connecting.py"
incarnation = Part("incarnation", ("tests/postgres/test_incarnations.py",))
pooler = Part("pooler", ("tests/postgres/test_poolers.py",))
wait = Part("wait", ("tests/postgres/test_waits.py",))
standby = Part("standby", ("tests/postgres/test_standbys.py",))
doctor = Part("doctor", ("tests/unit/store/test_survival.py",))
MUTANTS = (
    incarnation(
        "copies-not-noticed",
        CONDITION,
        "",
        '" WHERE i.started_at = pg_postmaster_start_time() AND i.xmin = i.born::xid"',
        '" WHERE i.xmin = i.born::xid"',
        "After a copy of the server's files was put back, views stay wrong.",
    ),
    incarnation(
        "deltas-of-lost-commits",
        READING,
        "read_changes",
        "ELSIF NOT ${incarnation_is_known} THEN «PERFORM needs_incarnation();»",
        "NULL;",
        "After a promotion, views keep what was lost until a process begins an incarnation.",
    ),
    incarnation(
        "same-generation-again",
        SQL,
        "begin_incarnation",
        "drawn, «generation = greatest(generation, now_us) + drawn»",
        "generation = generation",
        "After a promotion, views and profiles of what was lost are patched for ever.",
    ),
    incarnation(
        "numbers-come-again",
        SQL,
        "begin_incarnation",
        "+ 2 + (random() * 997)::bigint) * ${jobs_passed_over}",
        ") * ${jobs_passed_over}",
        "A user's number of a lost job cancels a stranger's.",
    ),
    incarnation(
        "numbers-of-pipelines-come-again",
        SQL,
        "begin_incarnation",
        "ARRAY[pg_get_serial_sequence('omega.job', 'id')«, pg_get_serial_sequence('omega.pipeline',"
        " 'id')»]",
        "",
        "A user's number of a lost pipeline cancels a stranger's.",
        ("tests/postgres/test_pipelines.py",),
    ),
    incarnation(
        "marks-of-lost-commits",
        READING,
        "own_allocations",
        "CASE WHEN NOT o.are_new AND c.incarnation = _incarnation THEN _mark END",
        "CASE WHEN NOT o.are_new THEN _mark END",
        "Nodes never end tasks whose ends were lost.",
    ),
    pooler(
        "settings-left-to-the-pooler",
        CONNECTING,
        "_connect",
        "connection.keeps_settings = False\nreturn connection",
        "return connection",
        "Statements run without a limit of time, and leave their names on servers of others.",
    ),
    pooler(
        "dropped-settings-not-noticed",
        CONNECTING,
        "_connect",
        "connection.keeps_settings = «has == token»",
        "True",
        "A pooler that drops what a client asks for leaves statements without a limit of time.",
    ),
    wait(
        "deaf-while-it-waits",
        "omega/store/postgres/answered.py",
        "_silence_s_max",
        "self.stop is not None and self.stop.is_set()",
        "False",
        "A process that waits for a synchronous standby is killed, and keeps its leases.",
    ),
    standby(
        "stays-on-a-server-that-takes-no-writes",
        LINK,
        "_silence",
        "if isinstance(failure, errors.ReadOnlySqlTransaction):\n«self.close()»",
        "pass",
        "After a failover that demotes a server in place, processes never find the new primary.",
    ),
    doctor(
        "split-brain-not-told",
        SURVIVAL,
        "hosts",
        "len(primaries) > 1",
        "False",
        "Two servers grant the same room, and nobody says so.",
    ),
    doctor(
        "missing-standby-not-told",
        SURVIVAL,
        "synchronous_standbys",
        "if «there >= wanted»:",
        "True",
        "Nothing is committed, and the doctor finds the cell well.",
    ),
    doctor(
        "failing-archive-not-told",
        SURVIVAL,
        "archive",
        "not «state.is_failing»:",
        "False",
        "A restore to a point in time ends long before that point.",
    ),
)
