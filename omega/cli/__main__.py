"""`python -m omega.cli`: the same as `omega`, for whoever starts processes.

Goal     Let a supervisor start a verb with its own interpreter, wherever the script is installed.
Promise  Exit codes are those of omega.cli.main.
Source   docs/decisions/0013-processes.md.
"""

from omega.cli.main import main

if __name__ == "__main__":
    main()
