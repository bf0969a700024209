"""Slurm of the distribution: slurmctld, slurmd and munge, configured and started here, as root."""

import os
import secrets
import shlex
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from benchmarks.execution.systems import POLL_S, START_S_MAX, environment, process, said, tree
from benchmarks.harness import Stage
from omega.errors import OmegaError

PROGRAMS: Final = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "sinfo")
PATH: Final = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
KEY_BYTES: Final = 1_024
CONFIGURATION: Final = """\
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
# No cgroups: the machine may not let them be made.
ProctrackType=proctrack/linuxproc
# By default a node runs one job at a time.
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
# By default arrays have 1,000 tasks, and the controller knows 10,000 jobs.
MaxArraySize=100001
MaxJobCount=110000
# One line a task that has ended, which tells the benchmark of the ends.
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/ended
NodeName={host} NodeAddr=127.0.0.1 CPUs={slots} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
TUNED: Final = (
    # The scheduler is due each second, and need not wait 3 s after a submission or an end.
    "SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1",
    "JobAcctGatherType=jobacct_gather/none",
    "SlurmctldDebug=error",
    "SlurmdDebug=error",
)


@dataclass(frozen=True)
class Slurm:
    """A cluster of this machine."""

    name: str = "slurm"
    label: str = "Slurm, defaults"
    settings: tuple[str, ...] = ()
    """Lines of the configuration beyond what it needs to run here."""

    def absence(self) -> str | None:
        """Return which of its programs is missing, or that this is not root."""
        missing = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
        if missing:
            return f"not installed: no {', '.join(missing)} (Debian: slurm-wlm)"
        return None if os.geteuid() == 0 else "slurmd must be started by root"

    def version(self) -> str:
        """Return what the controller says."""
        return said([_path("slurmctld"), "-V"])

    @contextmanager
    def started(self, folder: Path, stage: Stage, slots: int) -> Iterator["RunningSlurm"]:
        """Run the three daemons for the block."""
        self._write(folder, slots)
        env = environment(SLURM_CONF=str(folder / "slurm.conf"), PATH=PATH)
        munge = [
            *(_path("munged"), "--foreground", "--force"),
            *(f"--socket={folder}/munge.socket", f"--key-file={folder}/munge.key"),
            *(f"--pid-file={folder}/munged.pid", f"--seed-file={folder}/munge.seed"),
            f"--log-file={folder}/munged.log",
        ]
        with ExitStack() as stack:
            daemons: list[int] = []
            for command, is_ready in (
                (munge, _has_socket),
                ([_path("slurmctld"), "-D", "-c"], _answers),
                ([_path("slurmd"), "-D", "-c"], _idle),
            ):
                log = folder / f"{Path(command[0]).name}.out"
                daemon = stack.enter_context(process(command, log, env))
                daemons.append(daemon.pid)
                began_s = stage.clock.now()
                while not is_ready(env):
                    if daemon.poll() is not None or stage.clock.now() - began_s > START_S_MAX:
                        raise OmegaError(f"{command[0]} does not start: {log.read_text()}")
                    stage.go_on()
                    stage.clock.sleep(POLL_S)
            yield RunningSlurm(folder, stage, env, daemons)

    def _write(self, folder: Path, slots: int) -> None:
        for name in ("state", "spool", "work"):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.touch(mode=0o400)
        key.write_bytes(secrets.token_bytes(KEY_BYTES))
        (folder / "ended").touch()
        text = CONFIGURATION.format(
            host=socket.gethostname().partition(".")[0],
            controller_port=_free_port(),
            node_port=_free_port(),
            folder=folder,
            slots=slots,
        )
        (folder / "slurm.conf").write_text("\n".join([text, *self.settings, ""]))


@dataclass
class RunningSlurm:
    """A cluster whose records of ended jobs are read as they are written."""

    folder: Path
    stage: Stage
    env: Mapping[str, str]
    daemons: Sequence[int]
    read: int = field(default=0)
    """Bytes of the records that were read."""

    def run(self, command: Sequence[str], tasks: int) -> None:
        """Submit an array, or one job; wait until each has a record."""
        array = [] if tasks == 1 else [f"--array=1-{tasks}"]
        line = shlex.join(command)
        self._new_records()  # those of what was typed
        self._typed(["sbatch", *array, "--wrap", line])
        records: list[str] = []
        while len(records) < tasks:
            self.stage.go_on()
            self.stage.clock.sleep(POLL_S)
            records += self._new_records()
        failed = sum("JobState=COMPLETED" not in record for record in records)
        if failed or len(records) > tasks:
            raise OmegaError(f"{failed} of {tasks} tasks failed; {len(records)} records")

    def typed(self, line: str) -> list[str] | None:
        """Return `srun`."""
        settings = f"SLURM_CONF={self.env['SLURM_CONF']}"
        return ["env", settings, _path("srun"), "--quiet", "sh", "-c", line]

    def processes(self) -> list[psutil.Process]:
        """Return the daemons and what they have started."""
        return [one for pid in self.daemons for one in tree(pid)]

    def _typed(self, command: Sequence[str]) -> str:
        where = f"--chdir={self.folder / 'work'}"
        return said([_path(command[0]), where, *command[1:]], self.env)

    def _new_records(self) -> list[str]:
        with (self.folder / "ended").open("rb") as ended:
            ended.seek(self.read)
            whole = ended.read().rpartition(b"\n")
        self.read += len(whole[0]) + len(whole[1])
        return whole[0].decode(errors="replace").splitlines()


def _path(program: str) -> str:
    found = shutil.which(program, path=PATH)
    assert found is not None, "absence was asked for"
    return found


def _has_socket(env: Mapping[str, str]) -> bool:
    return Path(env["SLURM_CONF"]).with_name("munge.socket").exists()


def _answers(env: Mapping[str, str]) -> bool:
    try:
        return bool(said([_path("sinfo"), "--noheader"], env))
    except OmegaError:
        return False


def _idle(env: Mapping[str, str]) -> bool:
    return said([_path("sinfo"), "--noheader", "--format=%T"], env) == "idle"


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
