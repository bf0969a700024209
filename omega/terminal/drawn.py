"""What a console would print, as one text.

Goal     Show a screen of the command line inside another program's screen.
Promise  The text is what a PrintableConsole prints, with its styles: printable, and at most as wide
         as asked for. No part of it is read as markup.
Source   omega/terminal/terminal.py.
"""

import io

from rich.console import RenderableType
from rich.text import Text

from omega.terminal.terminal import PrintableConsole


def drawn(renderable: RenderableType, width: int) -> Text:
    """Return what is printed of an object on a console of so many columns."""
    console = PrintableConsole(
        file=io.StringIO(), width=width, force_terminal=True, color_system="truecolor"
    )
    text = Text(no_wrap=True, end="")
    for segment in console.render(renderable, console.options.update(width=width)):
        if not segment.control:
            text.append(segment.text, segment.style)
    text.rstrip()
    return text
