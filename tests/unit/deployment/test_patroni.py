"""The files of deploy/patroni agree with each other, and hold no password."""

import re
from typing import Any

import pytest
import yaml
from psycopg.conninfo import conninfo_to_dict

from tests.architecture.tree import ROOT
from tests.docs.documents import document, marked

FOLDER = ROOT / "deploy/patroni"
NODES = ["db1", "db2", "db3"]


@pytest.fixture
def patroni() -> dict[str, Any]:
    said: dict[str, Any] = yaml.safe_load((FOLDER / "patroni.yml").read_text())
    return said


def test_all_files_name_the_same_nodes(patroni: dict[str, Any]) -> None:
    etcd = (FOLDER / "etcd.env").read_text()
    proxy = (FOLDER / "haproxy.cfg").read_text()
    (cell,) = marked(document("deploy/patroni/README.md"), "cell")
    (url,) = re.findall(r'OMEGA_DATABASE_URL="(.+)"', cell.text)
    named = conninfo_to_dict(url)

    assert [f"{node}:2379" for node in NODES] == patroni["etcd3"]["hosts"]
    assert NODES == re.findall(r"[=,](\w+)=http:", etcd)
    assert NODES == re.findall(r"^ +server (\w+) \1:5432 check port 8008$", proxy, re.MULTILINE)
    assert (",".join(NODES), "read-write") == (named["host"], named["target_session_attrs"])


def test_what_is_acknowledged_is_on_two_nodes(patroni: dict[str, Any]) -> None:
    shared = patroni["bootstrap"]["dcs"]

    assert shared["synchronous_mode"] is True
    assert "synchronous_commit" not in shared["postgresql"]["parameters"]


def test_a_node_has_time_to_notice_that_its_lock_is_gone(patroni: dict[str, Any]) -> None:
    shared = patroni["bootstrap"]["dcs"]

    assert shared["ttl"] >= shared["loop_wait"] + 2 * shared["retry_timeout"]


def test_an_old_primary_can_be_rewound(patroni: dict[str, Any]) -> None:
    server = patroni["bootstrap"]["dcs"]["postgresql"]

    assert server["use_pg_rewind"] is True
    assert {"wal_log_hints", "wal_keep_size"} <= server["parameters"].keys()


def test_the_files_hold_no_password() -> None:
    lines = [line for path in FOLDER.iterdir() for line in path.read_text().splitlines()]
    passwords = [line for line in lines if re.match(r"\w*PASSWORD\w*=", line)]

    assert len(passwords) == len([line for line in passwords if line.endswith("=")]) > 0
    assert [] == [line for line in lines if re.match(r"\s*password:", line)]
