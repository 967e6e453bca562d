"""`omnigraph embed`: vectors for stored nodes, or for the records of a file.

Owns telling the two forms apart and the rendering; what is embedded, and how, is the
engine's to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.configured import layers_of
from omnigraph.cli.options.default_branch import configured_branch
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.shared import engine_of, spark_options, spark_settings
from omnigraph.cli.options.words import uri_argument
from omnigraph.cli.render.output import author_lines, result_of, write_json, write_text

if TYPE_CHECKING:
    from omnigraph.embed.files import EmbedFiles, FileSummary, Mode
    from omnigraph.write.backfill import EmbedResult

_FILE = click.Path(path_type=Path)


@click.command("embed", cls=VerbCommand)
@uri_argument
@click.option("--type", "types", metavar="T", multiple=True, help="A type to embed.")
@click.option("--property", "property_", metavar="P", help="One vector of the type, not all.")
@click.option(
    "--branch",
    metavar="B",
    help="The branch of the graph; main if not given, and nothing else is configured.",
)
@click.option(
    "--where", metavar="CONDITION", help="Only these nodes, as in the where of a mutation."
)
@click.option("--all", "every", is_flag=True, help="Make vectors that are there again, too.")
@click.option(
    "--commit-rows",
    metavar="N",
    type=click.IntRange(min=1),
    help="Commit after so many nodes each; started again, it goes on there.",
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "inline", "spark"]),
    default="auto",
    help="Where the vectors of a graph are made; by size if not given.",
)
@spark_options
@click.option("--seed", metavar="FILE", type=_FILE, help="A seed manifest that names the files.")
@click.option("--input", "input_", metavar="FILE", type=_FILE, help="The NDJSON file to read.")
@click.option("--output", metavar="FILE", type=_FILE, help="The NDJSON file to write.")
@click.option("--spec", metavar="FILE", type=_FILE, help="What is embedded in the file, as JSON.")
@click.option("--reembed-all", is_flag=True, help="In a file, make all vectors again.")
@click.option("--clean", is_flag=True, help="In a file, take the vectors away.")
@click.option(
    "--select",
    "selectors",
    metavar="[TYPE:]FIELD=VALUE",
    multiple=True,
    help="In a file, only records that match any of these.",
)
@json_option
@click.pass_obj
def command(
    scope: CommandScope,
    *,
    uri: str | None,
    types: tuple[str, ...],
    property_: str | None,
    branch: str | None,
    where: str | None,
    every: bool,
    commit_rows: int | None,
    engine: str,
    master: str | None,
    remote: str | None,
    conf: Sequence[str],
    seed: Path | None,
    input_: Path | None,
    output: Path | None,
    spec: Path | None,
    reembed_all: bool,
    clean: bool,
    selectors: tuple[str, ...],
    as_json: bool,
) -> None:
    """Make the vectors of stored nodes, or of the records of a file.

    The nodes of a type that have a text and no vector get one, as one commit, or with
    --commit-rows as one for every so many. With --seed, or --input, --output and --spec,
    a file is embedded and no graph is involved.
    """
    files = {"seed": seed, "input_": input_, "output": output, "spec": spec}
    of_files = {
        "--seed": seed,
        "--input": input_,
        "--output": output,
        "--spec": spec,
        "--reembed-all": reembed_all,
        "--clean": clean,
        "--select": selectors,
    }
    of_graphs = {
        "URI": uri,
        "--uri": scope.location,
        "--store": scope.store,
        "--server": scope.server,
        "--graph": scope.graph,
        "--as": scope.actor,
        "--property": property_,
        "--branch": branch,
        "--where": where,
        "--all": every,
        "--commit-rows": commit_rows,
        "--engine": engine != "auto",
        "--master": master,
        "--remote": remote,
        "--conf": conf,
    }
    given = [name for name, value in of_files.items() if value]
    if given:
        _refuse(of_graphs, f"a graph is not involved in {given[0]}")
        _embed_file(files, types, selectors, reembed_all=reembed_all, clean=clean, as_json=as_json)
    else:
        options = {
            "property": property_,
            "branch": branch or configured_branch(scope, None) or "main",
            "where": where,
            "only_missing": not every,
            "commit_rows": commit_rows,
            "engine": engine_of(engine, master, remote),
            "spark": spark_settings(master, remote, conf),
            "progress": not as_json,
        }
        _embed_graph(scope, uri, types, options, as_json=as_json)


def _refuse(options: dict[str, Any], why: str) -> None:
    for name, value in options.items():
        if value:
            raise click.UsageError(f"{why}: leave {name} out", click.get_current_context())


def _embed_graph(
    scope: CommandScope,
    uri: str | None,
    types: tuple[str, ...],
    options: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    if uri is None and not scope.is_addressed and layers_of(scope).place is None:
        raise click.UsageError(
            "what is to be embedded? URI or --server names a graph, --seed or --input a file",
            click.get_current_context(),
        )
    target = target_of(scope, uri)
    if len(types) != 1:
        raise click.UsageError(
            "name the node type with --type, one at a time", click.get_current_context()
        )
    with target.write("embed", scope) as graph:
        result = graph.embed(types[0], **options)
    with result_of(None if result.commit is None else result.commit.id):
        if as_json:
            from omnigraph.wire.results import EmbedBody

            write_json(EmbedBody.of(result))
        else:
            write_text("\n".join(_graph_lines(result)))


def _graph_lines(result: EmbedResult) -> list[str]:
    counts = ", ".join(f"{count} {name}" for name, count in result.vectors.items())
    lines = [f"embedded {result.type_name} on branch {result.branch}: {counts}"]
    if result.embedding is not None:
        lines.append(f"model: {result.embedding['model']} ({result.embedding['provider']})")
    return [*lines, *author_lines(result.actor, result.commit)]


def _embed_file(
    named: dict[str, Path | None],
    types: tuple[str, ...],
    selectors: tuple[str, ...],
    *,
    reembed_all: bool,
    clean: bool,
    as_json: bool,
) -> None:
    from omnigraph.embed.files import RecordChoice, Selector, embed_file

    if reembed_all and clean:
        raise click.UsageError("--reembed-all and --clean: choose one", click.get_current_context())
    choice = RecordChoice(types, [Selector.of(text) for text in selectors])
    mode: Mode | None = "reembed_all" if reembed_all else "clean" if clean else None
    summary = embed_file(_files(**named), choice, mode)
    if as_json:
        from omnigraph.wire.results import EmbedFileBody

        write_json(EmbedFileBody.of(summary))
    else:
        write_text(_file_line(summary))


def _files(
    seed: Path | None, input_: Path | None, output: Path | None, spec: Path | None
) -> EmbedFiles:
    from omnigraph.embed.files import EmbedFiles, read_seed, read_spec

    if seed is not None:
        _refuse({"--input": input_, "--spec": spec}, "--seed names the input and the spec")
        return read_seed(seed, output)
    if input_ is None or output is None or spec is None:
        raise click.UsageError(
            "a file is embedded with --input, --output and --spec, or with --seed",
            click.get_current_context(),
        )
    return EmbedFiles(input_, output, read_spec(spec))


def _file_line(summary: FileSummary) -> str:
    done = (
        f"cleaned {summary.cleaned_records}"
        if summary.mode == "clean"
        else f"embedded {summary.embedded_records}"
    )
    return (
        f"{done} of {summary.records} records into {summary.output} "
        f"({summary.mode}, {summary.selected_records} selected, dimension {summary.dimension}, "
        f"model {summary.model})"
    )
