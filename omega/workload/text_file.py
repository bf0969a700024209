"""Files of text that an operator names: lists of machines, policies.

Goal     Read such a file in one way.
Promise  What cannot be read, is too long or is not UTF-8 is BadInput, naming the file.
Source   `LIMITS.file_bytes_max`.
"""

from pathlib import Path

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.workload.quantities import shown


def read_text(path: Path) -> str:
    """Return the text of a file, without a byte order mark. Raises BadInput."""
    try:
        with path.open("rb") as opened:
            content = opened.read(LIMITS.file_bytes_max + 1)
        if len(content) > LIMITS.file_bytes_max:
            raise BadInput(f"is longer than {LIMITS.file_bytes_max:,} bytes", file=str(path))
        return content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadInput(f"cannot be read: {reason}", file=str(path)) from error
    except ValueError as error:  # a name with a null character
        raise BadInput(f"cannot be read: {error}", file=shown(str(path))) from error
