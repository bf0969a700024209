"""`omega`, and `python -m omega.cli` for programs that start a verb as a process.

Goal     Let a supervisor start a verb with its own interpreter, wherever the script is installed.
Promise  Exit codes are those of omega.cli.main, also for a Ctrl-C while that is being imported.
Source   docs/decisions/0013-processes.md.
"""

import sys


def main() -> None:
    """Load the command line and run it."""
    try:
        # Imported here, not above: a Ctrl-C during the import, which takes a moment, is caught.
        from omega.cli.main import main as run  # noqa: PLC0415

        run()
    except KeyboardInterrupt:
        sys.stderr.write("omega: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
