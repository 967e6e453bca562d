"""Global options: where they may stand, and which command takes which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import pytest

from omnigraph.cli.command import LazyGroup, VerbCommand
from omnigraph.cli.options.capabilities import CAPABILITIES, FLAGS, Flag, capability, refusals
from omnigraph.cli.options.scope import CommandScope
from omnigraph.cli.verbs import VERBS, Verb

Run = Callable[..., Any]


def scope_from(args: list[str], verb: str = "load") -> CommandScope:
    """Run a verb that only hands back its scope."""
    group = LazyGroup("omnigraph", package="", verbs={verb: Verb("", "")})
    group.get_command = lambda ctx, cmd_name: VerbCommand(  # type: ignore[method-assign]  # noqa: ARG005 - click passes it
        cmd_name, callback=lambda: click.get_current_context().obj
    )
    scope = group.main(args, prog_name="omnigraph", standalone_mode=False)
    assert isinstance(scope, CommandScope)
    return scope


def test_options_stand_before_and_after_the_verb() -> None:
    args = ["--store", "a.omni", "--yes", "load", "--as", "ann", "--quiet", "--profile", "p"]
    assert scope_from(args) == CommandScope(
        store="a.omni", actor="ann", yes=True, quiet=True, profile="p"
    )


def test_the_last_one_wins() -> None:
    assert scope_from(["--store", "a", "load", "--store", "b"]).store == "b"


def test_nothing_given_is_an_empty_scope() -> None:
    scope = scope_from(["load"])
    assert scope == CommandScope()
    assert scope.given == frozenset()


def test_runs_do_not_share_their_scope() -> None:
    assert scope_from(["--store", "a", "load"]).store == "a"
    assert scope_from(["load"]).store is None


def test_an_empty_value_counts_as_given() -> None:
    assert scope_from(["--store", "", "load"]).given == {"store"}


@pytest.mark.parametrize("flag", FLAGS)
def test_a_local_command_refuses_every_scope_flag(run: Run, flag: Flag) -> None:
    for args in ([f"--{flag}", "x", "version"], ["version", f"--{flag}", "x"]):
        ran = run(*args)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith(f"error: `version` is a local command and takes no --{flag}: ")


def test_yes_and_quiet_are_taken_everywhere(run: Run) -> None:
    assert run("--yes", "version", "--quiet").code == 0


def test_refused_flags_come_in_a_fixed_order() -> None:
    assert [refusal.flag for refusal in refusals("init", FLAGS[::-1])] == [
        "server",
        "cluster",
        "graph",
        "as",
        "profile",
    ]


@pytest.mark.parametrize(
    ("command", "kind", "takes"),
    [
        ("query", "data", "server graph store uri profile"),
        ("blob get", "data", "server graph store uri profile"),
        ("commit list", "data", "server graph store uri profile"),
        ("changes poll", "data", "server graph store uri profile"),
        ("mutate", "data", "server graph store uri as profile"),
        ("load", "data", "server graph store uri as profile"),
        ("ingest", "data", "server graph store uri as profile"),
        ("branch create", "data", "server graph store uri as profile"),
        ("snapshot", "data", "server graph store uri as profile"),
        ("export", "data", "server graph store uri as profile"),
        ("schema show", "data", "server graph store uri as profile"),
        ("schema apply", "data", "server graph store uri as profile"),
        ("graphs list", "served", "server profile"),
        ("optimize", "direct", "graph store uri cluster profile"),
        ("repair", "direct", "graph store uri cluster profile"),
        ("cleanup", "direct", "graph store uri cluster profile"),
        ("verify", "direct", "graph store uri cluster profile"),
        ("lint", "direct", "graph store uri cluster profile"),
        ("schema plan", "direct", "store uri profile"),
        ("init", "direct", "store uri"),
        ("policy validate", "control", "graph cluster profile"),
        ("queries list", "control", "graph cluster profile"),
        ("cluster status", "control", ""),
        ("cluster apply", "control", "as"),
        ("cluster approve", "control", "as"),
        ("alias", "local", ""),
        ("embed", "local", "server graph store uri as"),
        ("fmt", "local", ""),
        ("login", "local", ""),
        ("logout", "local", ""),
        ("lsp", "local", ""),
        ("profile list", "local", ""),
        ("version", "local", ""),
    ],
)
def test_capabilities(command: str, kind: str, takes: str) -> None:
    found = capability(command)
    assert found.kind == kind
    assert found.takes == set(takes.split())


@pytest.mark.parametrize(
    ("command", "flag", "hint"),
    [
        ("query", "cluster", "use --server NAME|URL or --store URI"),
        ("query", "as", "it writes nothing, so no actor is recorded"),
        ("lint", "server", "use --cluster DIR|URI or --store URI"),
        ("graphs list", "store", "use --server NAME|URL"),
        ("cluster status", "as", "only `cluster apply` and `cluster approve` record an actor"),
        ("init", "profile", "use --store URI"),
        ("fmt", "uri", "it works on its own arguments alone"),
    ],
)
def test_a_refusal_names_command_kind_flag_and_a_way_out(
    command: str, flag: Flag, hint: str
) -> None:
    kind = capability(command).kind
    assert [str(refusal) for refusal in refusals(command, {flag})] == [
        f"`{command}` is a {kind} command and takes no --{flag}: {hint}"
    ]


def test_every_refusal_has_a_hint() -> None:
    for command in CAPABILITIES:
        assert all(refusal.hint for refusal in refusals(command, FLAGS))


def test_every_verb_is_in_the_table() -> None:
    firsts = {command.partition(" ")[0] for command in CAPABILITIES}
    assert set(VERBS) <= firsts


def test_an_undeclared_command_is_a_mistake_of_ours() -> None:
    with pytest.raises(LookupError, match="`nonsense`"):
        capability("nonsense")


def test_the_help_of_a_verb_shows_only_what_it_takes(run: Run) -> None:
    text = run("version", "--help").out
    assert "--quiet" in text
    assert "--store" not in text
