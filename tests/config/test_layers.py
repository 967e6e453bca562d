"""Who says what counts: every value with every choice of layers, against a table of their order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from omnigraph.config.layers import Flags, Layers, Sourced
from omnigraph.config.operator import OperatorConfig, read_operator_config
from omnigraph.config.project import ProjectFile
from omnigraph.config.project_reader import parse_project

PROJECT = "/p/omnigraph.yaml"
# Of every value: the layers that can say it, the strongest first, with what each of them says.
SAID: dict[str, dict[str, str]] = {
    "graph": {
        "--graph": "of-flag",
        "OMNIGRAPH_GRAPH": "of-variable",
        "--profile": "store s3://of-profile",
        "project": "of-project",
        "operator": "store s3://of-operator",
    },
    "branch": {
        "--branch": "of-flag",
        "OMNIGRAPH_BRANCH": "of-variable",
        "alias": "of-alias",
        "graph": "of-graph",
        "project": "of-project",
    },
    "output.format": {
        "--format": "json",
        "alias": "csv",
        "project": "kv",
        "operator": "jsonl",
    },
    "output.table_max_column_width": {"project": "30", "operator": "20"},
    "output.table_cell_layout": {"project": "wrap", "operator": "truncate"},
    "actor": {"--as": "of-flag", "operator": "of-operator", "project": "of-project"},
}
BUILT_IN: dict[str, object] = {
    "graph": None,
    "branch": "main",
    "output.format": "table",
    "output.table_max_column_width": 80,
    "output.table_cell_layout": "truncate",
    "actor": None,
}


def cases() -> Iterator[Any]:
    for key, layers in SAID.items():
        for chosen in product([True, False], repeat=len(layers)):
            said = [layer for layer, is_said in zip(layers, chosen, strict=True) if is_said]
            yield pytest.param(key, said, id=f"{key}-{'+'.join(said) or 'nobody'}")


def project_of(key: str, said: list[str]) -> ProjectFile:
    lines = {"graphs": "  g: {uri: s3://g}", "other": ""}
    if key == "graph":
        names = ("of-flag", "of-variable", "of-project")
        lines["graphs"] = "\n".join(f"  {name}: {{uri: s3://{name}}}" for name in names)
    if key == "branch" and "graph" in said:
        lines["graphs"] = "  g: {uri: s3://g, branch: of-graph}"
    if "project" in said:
        lines["other"] = {
            "graph": "default: {graph: of-project}",
            "branch": "default: {branch: of-project}",
            "output.format": "output: {format: kv}",
            "output.table_max_column_width": "output: {table_max_column_width: 30}",
            "output.table_cell_layout": "output: {table_cell_layout: wrap}",
            "actor": "cli: {actor: of-project}",
        }[key]
    alias = ""
    if "alias" in said:
        member = "branch: of-alias" if key == "branch" else "format: csv"
        alias = f"aliases: {{a: {{query: q.gq, {member}}}}}"
    return parse_project(f"{lines['other']}\n{alias}\ngraphs:\n{lines['graphs']}\n", Path(PROJECT))


def operator_of(key: str, said: list[str], directory: Path) -> OperatorConfig:
    lines = ["profiles: {p: {store: 's3://of-profile'}}"]
    if "operator" in said:
        lines.append(
            {
                "graph": "defaults: {store: 's3://of-operator'}",
                "output.format": "defaults: {output: jsonl}",
                "output.table_max_column_width": "defaults: {table_max_column_width: 20}",
                "output.table_cell_layout": "defaults: {table_cell_layout: truncate}",
                "actor": "operator: {actor: of-operator}",
            }[key]
        )
    (directory / "config.yaml").write_text("\n".join(lines))
    return read_operator_config(directory)


def found_by(layers: Layers, key: str) -> Sourced[Any]:
    alias = layers.aliases.get("a")
    if key == "branch":
        return layers.branch("g", alias)
    if key == "output.format":
        return layers.format(alias)
    return dict(layers.values()).get(key, Sourced(None, "built-in"))


@pytest.mark.parametrize(("key", "said"), list(cases()))
def test_the_strongest_layer_counts_and_is_named(key: str, said: list[str], tmp_path: Path) -> None:
    flags = Flags(
        graph="of-flag" if "--graph" in said else None,
        branch="of-flag" if "--branch" in said else None,
        format="json" if "--format" in said else None,
        actor="of-flag" if "--as" in said else None,
        profile="p" if "--profile" in said else None,
    )
    variables = ("OMNIGRAPH_GRAPH", "OMNIGRAPH_BRANCH")
    environment = {name: "of-variable" for name in variables if name in said}
    project = project_of(key, said)
    operator = operator_of(key, said, tmp_path)
    found = found_by(Layers(operator, project, flags, environment), key)
    if not said:
        assert (found.value, found.source) == (BUILT_IN[key], "built-in")
        return
    winner = next(layer for layer in SAID[key] if layer in said)
    assert str(found.value) == SAID[key][winner]
    named = {
        "project": "omnigraph.yaml:",
        "graph": "omnigraph.yaml:",
        "operator": str(operator.path),
        "alias": "the alias 'a' of omnigraph.yaml",
        "--profile": "profile 'p' (--profile)",
    }
    assert found.source.startswith(named.get(winner, winner))


def test_the_profile_of_the_environment_is_weaker_than_the_option(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("profiles: {a: {store: s3://a}, b: {store: s3://b}}")
    operator = read_operator_config(tmp_path)
    environment = {"OMNIGRAPH_PROFILE": "b"}
    for flags, source in ((Flags(profile="a"), "--profile"), (Flags(), "OMNIGRAPH_PROFILE")):
        place = Layers(operator, None, flags, environment).place
        assert place is not None
        assert place.source.endswith(f"({source})")


def test_a_graph_that_is_named_is_one_of_the_profiles_server(tmp_path: Path) -> None:
    text = "profiles: {p: {server: 'https://s', default_graph: usual}}"
    (tmp_path / "config.yaml").write_text(text)
    operator = read_operator_config(tmp_path)
    project = parse_project("graphs: {film: {uri: film.omni}}", Path(PROJECT))
    for name, expected in ((None, "usual"), ("film", "film")):
        place = Layers(operator, project, Flags(graph=name, profile="p"), {}).place
        assert place is not None
        assert (place.kind, place.target, place.graph) == ("server", "https://s", expected)


def test_named_things_are_united_and_the_stronger_entry_is_whole(tmp_path: Path) -> None:
    mine = "aliases: {a: {query: mine, args: [x], format: kv}, b: {query: mine}}"
    (tmp_path / "config.yaml").write_text(mine)
    project = parse_project("aliases: {a: {query: ours.gq}, c: {query: c.gq}}", Path(PROJECT))
    found = Layers(read_operator_config(tmp_path), project, Flags(), {}).aliases
    assert {name: one.query for name, one in found.items()} == {
        "a": "ours.gq",
        "b": "mine",
        "c": "c.gq",
    }
    assert (found["a"].args, found["a"].format) == ((), None)
