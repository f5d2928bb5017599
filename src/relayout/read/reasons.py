"""What an engine says of a bad file, in plain words."""

from __future__ import annotations

import json
import re

from relayout.read.local_files import open_bytes

_LONGEST_SEARCH_BYTES = 256 << 20
_KNOWN = (
    (r"Unexpected end of GZIP stream", "torn gzip: the file ends before its data does"),
    (r"Input is not a GZIP stream", "not gzip data, though its name says so"),
    (r"ZSTD|zstd", "damaged zst data"),
    (r"Invalid unicode|not utf-8 encoded", "not UTF-8 text"),
    (r'"maximum_object_size"', "a JSON value of more than 16 MB"),
    (r"Maximum line size", "a line of more than 2 MB"),
    (r"state machine reached an invalid state", "mixed line ends, or lines above the header"),
    (r"No magic bytes|magic bytes", "not a whole Parquet file"),
    (r"maximum recursion depth", "JSON that is nested more than 128 deep"),
    (r"Could not allocate|Out of Memory", "more memory is needed to read it than there is"),
)


def plain_reason(message: str, path: str) -> str:
    """One line for a user; the engine's own first line where nothing better is known."""
    for pattern, reason in _KNOWN:
        if re.search(pattern, message):
            return reason
    if "Malformed JSON" in message:
        return _where_json_breaks(path) or f"malformed JSON: {_detail(message)}"
    if found := re.search(r"CSV Error on Line: (\d+)", message):
        return _csv_reason(found.group(1), message)
    if found := re.search(r"column '.*? holds .*", message, re.DOTALL):
        return found.group().split("\n", 1)[0].replace(f" of {path} holds ", " holds ")
    if "JSON transform error" in message:
        return _detail(message)
    return message.split("\n", 1)[0].split(": ", 1)[-1].strip()[:300]


def _csv_reason(line: str, message: str) -> str:
    if found := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message):
        return f"line {line} has {found.group(2)} fields where the header has {found.group(1)}"
    if "unterminated quote" in message:
        return f"line {line} has a quote that is never closed, or text behind one"
    detail = re.search(r"^(?:Error when|Could not|Value).*", message, re.MULTILINE)
    return f"line {line}: {detail.group() if detail else 'cannot be read'}"


def _detail(message: str) -> str:
    first = message.split("\n", 1)[0]
    return re.sub(r'^.*? in file ".*?", (?:in|at) ', "", first, flags=re.DOTALL).strip(" .")[:300]


def _where_json_breaks(path: str) -> str:
    """The first line that is no JSON value; empty when lines do not tell (arrays, very large files)."""
    read = 0
    try:
        with open_bytes(path) as stream:
            for number, line in enumerate(stream, start=1):
                read += len(line)
                if number == 1 and line.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
                    return ""
                if read > _LONGEST_SEARCH_BYTES:
                    return ""
                if line.strip():
                    json.loads(line)
    except json.JSONDecodeError as problem:
        cut = problem.pos >= len(problem.doc.rstrip()) or "Unterminated" in problem.msg
        return f"line {number}: {'cut' if cut else 'malformed'} JSON ({problem.msg}, at character {problem.pos + 1})"
    except UnicodeDecodeError:
        return f"line {number}: not UTF-8 text"
    except (OSError, RecursionError):
        return ""
    return ""
