"""`python -m omega`: the command line of this interpreter's package.

Goal     Run a verb where the script `omega` is not on the path.
Promise  It is `python -m omega.cli`.
Source   docs/decisions/0013-processes.md.
"""

from omega.cli.__main__ import main

if __name__ == "__main__":
    main()
