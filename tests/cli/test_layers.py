"""What a flag, a project and nobody say of what one command does, and that no key is forgotten.

What many commands share (graphs, branches, formats, actors) is in `tests/config/test_layers.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.config.keys import OPERATOR, PROJECT
from omnigraph.maintain.reconcile import Maintainer
from tests.config.test_layers import SAID as SHARED

Run = Callable[..., Any]
# Of every key: what the flag says, what the project says, and what is so where nobody does.
SAID: dict[str, tuple[str, str, str, object]] = {
    "server.bind": ("--bind", "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:8080"),
    "server.workers": ("--workers", "3", "2", 1),
    "maintenance.keep": ("--older-than", "1d", "2d", None),
    "maintenance.commits": ("--keep", "7", "8", None),
    "graphs.*.schema": ("--schema", "flag.pg", "project.pg", None),
}
COMMANDS = {"server": ["serve", "--unauthenticated"], "maintenance": ["maintain"]}
ELSEWHERE = {
    # One value that many commands share.
    "graphs.*.branch": "branch",
    "default.branch": "branch",
    "default.graph": "graph",
    "defaults.default_graph": "graph",
    "defaults.store": "graph",
    "output.format": "output.format",
    "defaults.output": "output.format",
    "cli.actor": "actor",
    "operator.actor": "actor",
}
ADDRESSES = {"graphs.*.uri", "servers.*.url", "clusters.*.root", "defaults.server"}
"""Keys that a flag names or stands in for; two addresses on one command line are refused."""


def test_every_key_that_something_is_stronger_than_is_here() -> None:
    stronger = {key.path for key in (*PROJECT, *OPERATOR) if key.flag or key.variable}
    assert stronger == {*SAID, *ELSEWHERE, *ADDRESSES}
    assert set(ELSEWHERE.values()) <= set(SHARED)
    flags = {key.path: key.flag for key in PROJECT}
    assert {path: said[0] for path, said in SAID.items()} == {path: flags[path] for path in SAID}


def cases() -> Iterator[Any]:
    for key in SAID:
        for by_flag, by_project in product([True, False], repeat=2):
            yield pytest.param(key, by_flag, by_project, id=f"{key}-{by_flag}-{by_project}")


@pytest.fixture
def done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """A directory to work in, and what commands in it have come to."""
    from omnigraph.server import boot

    found: dict[str, object] = {}

    def serve(_: boot.Boot, bind: str, *, workers: int = 1) -> int:
        found.update({"server.bind": bind, "server.workers": workers})
        return 0

    once = Maintainer.run_once

    def noted(self: Maintainer, *, dry_run: bool = False) -> Any:
        older = self.limits.older_than
        found["maintenance.keep"] = None if older is None else f"{older.days}d"
        found["maintenance.commits"] = self.limits.keep
        return once(self, dry_run=dry_run)

    monkeypatch.setattr(boot, "serve", serve)
    monkeypatch.setattr(Maintainer, "run_once", noted)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for name in ("flag", "project"):
        Path(f"{name}.pg").write_text(f"node {name.title()} {{\n    name: String @key\n}}\n")
    return found


@pytest.mark.parametrize(("key", "by_flag", "by_project"), list(cases()))
def test_the_flag_then_the_project_then_nobody(
    run: Run, done: dict[str, object], key: str, by_flag: bool, by_project: bool
) -> None:
    flag, of_flag, of_project, of_nobody = SAID[key]
    section, _, name = key.rpartition(".")
    more = ""
    if by_project:
        more = f", schema: {of_project}" if section == "graphs.*" else ""
    lines = [f"version: 1\ngraphs: {{ g: {{ uri: g.omni{more} }} }}"]
    if by_project and not more:
        lines.append(f"{section}: {{ {name}: '{of_project}' }}")
    Path("omnigraph.yaml").write_text("\n".join(lines) + "\n")
    given = [flag, of_flag] if by_flag else []
    wanted = of_flag if by_flag else of_project if by_project else of_nobody
    if section == "graphs.*":
        ran = run("init", *given)
        if wanted is None:
            assert (ran.code, "which schema?" in ran.err) == (2, True)
        else:
            assert ran.code == 0
            assert list(og.open("g.omni").catalog.nodes) == [
                str(wanted).removesuffix(".pg").title()
            ]
        return
    og.init("g.omni", Path("flag.pg"))
    assert run(*COMMANDS[section], *given).code == 0
    assert str(done[key]) == str(wanted)
