"""`python -m docs`: write the pages of `docs/reference/` from the code; `--check` only names those out of date."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from docs.cli_page import cli_page
from docs.config_page import config_page
from docs.documents_page import documents_page
from docs.errors_page import errors_page

FOLDER = Path(__file__).parent / "reference"
PAGES: Mapping[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "config.md": config_page,
    "documents.md": documents_page,
    "errors.md": errors_page,
}
HEAD = "<!-- Generated from the code by `make docs`; change it there. -->\n\n"


def main(arguments: list[str]) -> int:
    stale = []
    for name, page in PAGES.items():
        text = HEAD + page()
        file = FOLDER / name
        if not file.exists() or file.read_text("utf-8") != text:
            stale.append(name)
            if "--check" not in arguments:
                file.write_text(text, "utf-8")
    if stale and "--check" in arguments:
        sys.stderr.write(f"out of date: {', '.join(stale)}; run `make docs`\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
