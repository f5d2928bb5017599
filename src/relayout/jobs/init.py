"""`relayout init`: a commented configuration and small sample sources, ready for plan and apply."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from relayout.config.load import FILE_NAME
from relayout.errors import UsageError
from relayout.jobs.samples.regions import sample_sources

MOST_NAMED = 5


def init(directory: Path) -> tuple[Path, ...]:
    """Write the files and return their paths; nothing is written when one of them is already there."""
    files = {directory / path: text for path, text in sample_sources()}
    # The configuration comes last, so that it never stands without what it names.
    files[directory / FILE_NAME] = resources.files("relayout.jobs.samples").joinpath(FILE_NAME).read_text("utf-8")
    taken = [path for path in reversed(files) if path.exists() or path.is_symlink()]
    if taken:
        named = [str(path) for path in taken[:MOST_NAMED]]
        more = [f"and {len(taken) - MOST_NAMED} more"] if len(taken) > MOST_NAMED else []
        raise UsageError(
            "init overwrites nothing, and there is already something in the way",
            where="\n       ".join(named + more),
            next="choose another folder: relayout init DIR",
        )
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
    except OSError as error:
        raise UsageError(
            f"the sample cannot be written: {error.strerror or error}",
            where=str(error.filename or directory),
            next="choose a folder that can be written to: relayout init DIR",
        ) from error
    return tuple(files)
