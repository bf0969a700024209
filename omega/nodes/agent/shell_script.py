"""The shell that stands above each task's command, and outlives the agent.

Goal     Keep how a command ended, whether or not an agent runs at that moment.
Promise  The command gets default signals, no descriptor of the shell's, and the environment as it
         is. A shell whose start somebody else has claimed runs nothing.
Source   POSIX sh. A shell starts in a millisecond, and every machine has one.

A shell sees 128 + n both for a command that signal n ended and for one that exits with 128 + n.
Like every shell, we count the codes from 129 to 192 as signals.
"""

from typing import Final

from omega.model.exits import SIGNAL_MAX, Exit, ExitCause

SHELL: Final = "/bin/sh"
SIGNALLED_FROM: Final = 128
UNABLE: Final = 125
"""The code of a shell that ran no command, because it could not write who it is."""
OUTSIDE: Final = 124
"""The code of a shell that ran no command, because it could not enter its cgroup."""
ENTER: Final = f'echo 0 >&0 2>/dev/null || exit {OUTSIDE}; exec "$@" </dev/null'
"""What runs a command in a cgroup, whose list of members is standard input."""

# Arguments: the folder of this run, then the command. Standard error of the shell itself is
# closed off: it would say "Killed" there. Traps are not inherited, ignored signals would be. Each
# file is written by one builtin in one write, so that it is whole or has no last line. A shell's
# variable that the task has, too, would change the task's: hence the agent's prefix. Standard input
# is the list of members of the task's cgroup, to which 0 means the writer, or /dev/null. A machine
# that is shut down sends SIGTERM to all: the exit says whether it came to the shell, too.
SCRIPT: Final = """\
OMEGA_SHELL_RUN=$1; shift
exec 9>&2 2>/dev/null
echo 0 >&0 || exit 124
exec </dev/null
OMEGA_SHELL_TERM=
trap : HUP INT QUIT USR1 USR2
trap 'OMEGA_SHELL_TERM=" TERM"' TERM
set -Cf
read -r OMEGA_SHELL_STAT </proc/self/stat
read -r OMEGA_SHELL_BOOT </proc/sys/kernel/random/boot_id
ticks_of() { shift 19; OMEGA_SHELL_TICKS=$1; }
ticks_of ${OMEGA_SHELL_STAT##*) }
echo "$$ $OMEGA_SHELL_TICKS $OMEGA_SHELL_BOOT" >"$OMEGA_SHELL_RUN/shell" || exit 125
(exec "$@" 2>&9 9>&-)
OMEGA_SHELL_CODE=$?
echo "$OMEGA_SHELL_CODE$OMEGA_SHELL_TERM" >"$OMEGA_SHELL_RUN/exit"
exit "$OMEGA_SHELL_CODE"
"""


def exit_of_code(code: int, restarts: int) -> Exit:
    """Return the exit that `$?` means."""
    if SIGNALLED_FROM < code <= SIGNALLED_FROM + SIGNAL_MAX:
        number = code - SIGNALLED_FROM
        return Exit(cause=ExitCause.SIGNALLED, signal=number, restarts=restarts)
    return Exit(cause=ExitCause.EXITED, code=code, restarts=restarts)
