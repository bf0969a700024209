"""The progress bar of verbs that take long.

Goal     Show how far long work has come, in the same form in every verb.
Promise  The bar is shown only on a terminal, and removed when the work is done. Verbs that show
         none do not load it: `omega run` and its kind start sooner.
Source   rich.progress.
"""

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from omega.terminal.terminal import PrintableConsole


def progress_bar(console: PrintableConsole) -> Progress:
    """Return a progress bar on this console."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
        expand=True,
    )
