"""The tests of cgroups on user-mode Linux, a kernel of its own: `make test-cgroups`.

It has all controllers in version 2, whatever the machine has, and what the tests do stays in it: it
sees the machine's files and writes none. Debian's package is `user-mode-linux`.
"""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]
INIT = """\
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /run
mkdir /dev/shm /run/home
mount -t tmpfs tmpfs /dev/shm
ip link set lo up
cd {here}
export HOME=/run/home TMPDIR=/run PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PYTHONDONTWRITEBYTECODE=1 HYPOTHESIS_STORAGE_DIRECTORY=/run/hypothesis
{command}
echo "tests ended with code $?"
echo o >/proc/sysrq-trigger
sleep 100
"""


def test_cgroups_on_a_kernel_of_their_own(tmp_path: Path) -> None:
    kernel = shutil.which("linux.uml")
    if kernel is None:
        pytest.skip("linux.uml is not here; Debian has it in user-mode-linux")
    words = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "-v"]
    tests = sorted(map(str, (HERE / "tests/agent").glob("test_cgroup*.py")))
    command = shlex.join([*words, "--basetemp=/run/tests", *tests])
    init = tmp_path / "init"
    init.write_text(INIT.format(here=shlex.quote(str(HERE)), command=command))
    init.chmod(0o755)
    # With more memory a task may have more threads, and user-mode Linux takes long to start many.
    machine = ["mem=384M", "root=none", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}"]
    consoles = ["con=null", "con0=null,fd:1", "quiet"]
    ran = subprocess.run(
        [kernel, *machine, *consoles],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    print(ran.stdout)  # noqa: T201 - for whoever asks by -s, and for a failure
    if "ptrace set fp regs failed" in ran.stdout:
        pytest.skip("this processor has registers that linux.uml does not know, such as AMX")

    assert "tests ended with code 0" in ran.stdout
    assert re.search(r"\d\d passed", ran.stdout)
    assert "skipped" not in ran.stdout.splitlines()[-2]
