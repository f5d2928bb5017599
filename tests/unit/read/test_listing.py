"""Which files a source means, what their paths say, and what is said of those that cannot be used."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayout.errors import UsageError
from relayout.read.listing import Listing, list_source


def made(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")


def listed(folder: Path, *patterns: str, numbers: tuple[str, ...] = ()) -> Listing:
    """`numbers` are columns of which the values are whole numbers."""
    return list_source(patterns, str(folder), lambda column, text: column not in numbers or text.isdigit())


def told(listing: Listing, folder: Path) -> dict[str, dict[str, str | None]]:
    return {os.path.relpath(file.path, folder): dict(file.path_values) for file in listing.files}


def reasons(listing: Listing, folder: Path) -> dict[str, str]:
    return {os.path.relpath(file.path, folder): file.reason for file in listing.bad}


def test_folders_and_captures_become_columns_and_helper_files_are_passed_over(tmp_path: Path) -> None:
    made(
        tmp_path,
        "year=2020/geo=a%2Fb/x.json",
        "year=2020/geo=__HIVE_DEFAULT_PARTITION__/x.json",
        "year=2021/geo=/CAINC1_x.json",
        "year=2021/geo=a/_SUCCESS",
        "year=2021/geo=a/.x.json.crc",
        "year=2021/deeper/geo=a/x.json",
        "other/x.json",
    )
    assert told(listed(tmp_path, "year=*/geo=*/*.json"), tmp_path) == {
        "year=2020/geo=a%2Fb/x.json": {"year": "2020", "geo": "a/b"},
        "year=2020/geo=__HIVE_DEFAULT_PARTITION__/x.json": {"year": "2020", "geo": None},
        "year=2021/geo=/CAINC1_x.json": {"year": "2021", "geo": ""},
    }
    assert told(listed(tmp_path, "year=2021/**/{name}.json"), tmp_path) == {
        "year=2021/geo=/CAINC1_x.json": {"geo": "", "name": "CAINC1_x"},
        "year=2021/deeper/geo=a/x.json": {"geo": "a", "name": "x"},
    }
    assert len(told(listed(tmp_path, "**"), tmp_path)) == 5


def test_every_file_of_a_folder_says_the_same_and_every_folder_its_own(tmp_path: Path) -> None:
    made(tmp_path, *(f"year={year}/{name}.json" for year in (2020, 2021, "x") for name in "abc"))
    found = listed(tmp_path, "year={year}/*.json", numbers=("year",))
    assert told(found, tmp_path) == {
        f"year={year}/{name}.json": {"year": str(year)} for year in (2020, 2021) for name in "abc"
    }
    assert reasons(found, tmp_path) == {
        f"year=x/{name}.json": "no part of its path has the type of year" for name in "abc"
    }


def test_a_path_that_says_two_things_is_an_error_unless_types_decide(tmp_path: Path) -> None:
    made(tmp_path, "a_2020_b_7.json")
    (reason,) = reasons(listed(tmp_path, "*_{year}_*.json"), tmp_path).values()
    assert "can read this path as {year=2020} or {year=2020_b}" in reason or "{year=b}" in reason
    assert told(listed(tmp_path, "*_{year}_*.json", numbers=("year",)), tmp_path) == {
        "a_2020_b_7.json": {"year": "2020"}
    }
    twice = listed(tmp_path, "*_{year}_b_7.json", "a_2020_b_{year}.json", numbers=("year",))
    assert reasons(twice, tmp_path) == {"a_2020_b_7.json": "two patterns of the source read its path differently"}


def test_what_is_no_readable_file_is_named(tmp_path: Path) -> None:
    made(tmp_path, "good.json", "real/file.json", "loop/x.json")
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "nothing.json").symlink_to("nowhere")
    (tmp_path / "self.json").symlink_to("self.json")
    (tmp_path / "null.json").symlink_to("/dev/null")
    (tmp_path / "loop" / "again").symlink_to(tmp_path / "loop")
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    found = listed(tmp_path, "*.json")
    assert set(told(found, tmp_path)) == {"good.json"}
    assert reasons(found, tmp_path) == {
        "pipe.json": "a pipe, not a file",
        "nothing.json": "a link to nothing",
        "null.json": "a device, not a file",
        "self.json": "cannot be opened: Too many levels of symbolic links",
    }
    assert set(told(listed(tmp_path, "linked/*.json"), tmp_path)) == {"linked/file.json"}
    around = listed(tmp_path, "loop/**/*.json")
    assert set(told(around, tmp_path)) == {"loop/x.json"}
    assert reasons(around, tmp_path) == {"loop/again": "a link to a folder that holds it"}
    assert reasons(listed(tmp_path, "real"), tmp_path) == {"real": "a folder, not a file: write /* or /**/* behind it"}
    assert listed(tmp_path, "good.json/*.json", "nowhere/*.json").unmatched == ("good.json/*.json", "nowhere/*.json")


def test_a_folder_that_may_not_be_read_is_named_and_the_others_are_listed(tmp_path: Path) -> None:
    made(tmp_path, "open/x.json", "shut/x.json")
    shut = tmp_path / "shut"
    (listing, *_) = _listed_without_rights(tmp_path, shut)
    assert listing == (["open/x.json"], {"shut": "the folder cannot be listed: Permission denied"})


def _listed_without_rights(folder: Path, shut: Path) -> list[tuple[list[str], dict[str, str]]]:
    """The listing as somebody sees it who may not open `shut`; root may open everything, so a child steps down."""
    import json

    for above in (folder, *folder.parents):
        if os.stat(above).st_uid == os.getuid() and above != Path("/") and above != Path("/tmp"):
            above.chmod(0o755)
    shut.chmod(0)
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        if os.getuid() == 0:
            os.setuid(65534)
        found = listed(folder, "*/*.json")
        answer = (sorted(told(found, folder)), reasons(found, folder))
        os.write(sending, json.dumps(answer).encode())
        os._exit(0)
    os.close(sending)
    os.waitpid(child, 0)
    with os.fdopen(receiving) as stream:
        names, bad = json.loads(stream.read())
    shut.chmod(0o755)
    return [(names, bad)]


@pytest.mark.parametrize(
    "pattern", ["", "../x/*.json", "in/", "s3://*/x.json", "ftp://h/x", "{year}/{year}.json", "{a b}"]
)
def test_a_pattern_that_cannot_be_meant_is_refused(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(UsageError):
        listed(tmp_path, pattern)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30))
def test_any_value_in_a_folder_name_comes_back(value: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made(folder, f"v={quote(value, safe='')}/f.json")
        (file,) = listed(folder, "v=*/*.json").files
        expected = None if value == "__HIVE_DEFAULT_PARTITION__" else value
        assert dict(file.path_values) == {"v": expected}
