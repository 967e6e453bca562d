"""The keys of the files that people write: what each holds, its default, and who is stronger.

Owns the one table that files are checked against, that the JSON Schema, `config show` and the
page about configuration are made of. Reads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal[
    "text", "path", "uri", "number", "choice", "duration", "variable", "secret", "file", "list"
]
"""What a value is: `file` is a mapping with the one key `file`, `list` a list of texts."""
Output = Literal["table", "kv", "csv", "jsonl", "json"]
CellLayout = Literal["truncate", "wrap"]
ProviderKind = Literal["openai-compatible", "openai", "gemini", "local", "mock"]
BlobScope = Literal["server_safe", "embedded_only"]

PROJECT_FILE = "omnigraph.yaml"
OPERATOR_FILE = "config.yaml"
TEMPLATES = ("film", "knowledge", "blank")
"""The projects that `init --template` writes."""
CONFIG = "OMNIGRAPH_CONFIG"
GRAPH = "OMNIGRAPH_GRAPH"
STORE = "OMNIGRAPH_STORE"
BRANCH = "OMNIGRAPH_BRANCH"
NAMED = "*"
"""The place of a name in a path, such as that of a graph."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key: its path with `*` for names, and what is known of it."""

    path: str
    kind: Kind
    about: str
    default: str | None = None
    choices: tuple[str, ...] = ()
    flag: str | None = None
    variable: str | None = None
    newer: str | None = None
    """How version 1 spells an older key; `-` where it has no place for it."""
    least: int = 0

    @property
    def is_older(self) -> bool:
        """Whether only the older dialect has it."""
        return self.newer is not None

    @property
    def parts(self) -> tuple[str, ...]:
        """The names on the way to it."""
        return tuple(self.path.split("."))


_PATHS = "a path, a list of paths, or `{name: {file: path}}`"
_FORMATS = get_args(Output)
_LAYOUTS = get_args(CellLayout)

PROJECT: tuple[Key, ...] = (
    Key("version", "choice", "the dialect of the file", choices=("1",)),
    Key("project.name", "text", "what people call the project"),
    Key(
        "graphs.*.uri",
        "uri",
        "where the graph is: a path, `file://`, `s3://` or `http(s)://host[/graphs/ID]`",
        flag="--store, --server",
    ),
    Key("graphs.*.branch", "text", "its default branch", "main", flag="--branch", variable=BRANCH),
    Key(
        "graphs.*.schema",
        "path",
        "the schema for `init`, `schema plan` and `lint`",
        flag="--schema",
    ),
    Key("graphs.*.queries", "path", f"its stored queries: {_PATHS}"),
    Key("graphs.*.policy", "file", "`{file: path}`: who may do what with it on a server"),
    Key("graphs.*.embedding_provider", "text", "who makes its vectors: a name of `providers`"),
    Key(
        "graphs.*.external_blobs.allow",
        "list",
        "`[{base, scope}]`: below which places blobs may lie; the engine takes none from there yet",
        "nowhere",
    ),
    Key(
        "graphs.*.bearer_token_env",
        "variable",
        "the variable with the token for a graph on a server",
    ),
    Key(
        "default.graph",
        "text",
        "the graph that is meant where none is named",
        "the only one",
        flag="--graph",
        variable=GRAPH,
    ),
    Key(
        "default.branch",
        "text",
        "the branch of graphs that name none",
        "main",
        flag="--branch",
        variable=BRANCH,
    ),
    Key(
        "output.format",
        "choice",
        "how rows are printed",
        "table",
        choices=_FORMATS,
        flag="--format, --json",
    ),
    Key("output.table_max_column_width", "number", "the widest a column gets", "80", least=8),
    Key(
        "output.table_cell_layout",
        "choice",
        "what becomes of text that is wider",
        "truncate",
        choices=_LAYOUTS,
    ),
    Key("query.roots", "list", "where `.gq` files are looked for that are named bare"),
    Key("aliases.*.query", "text", "a `.gq` file, or the name of a stored query"),
    Key("aliases.*.name", "text", "which query of the file", "the only one"),
    Key("aliases.*.args", "list", "the parameters that further words are, in their order"),
    Key("aliases.*.params", "text", "parameters with their values"),
    Key("aliases.*.graph", "text", "the graph it is asked of", "the default graph"),
    Key("aliases.*.branch", "text", "the branch it is asked of"),
    Key("aliases.*.format", "choice", "how its rows are printed", choices=_FORMATS),
    Key(
        "providers.embedding.*.kind",
        "choice",
        "what speaks to it; `provider` says the same",
        "openai-compatible",
        choices=get_args(ProviderKind),
    ),
    Key("providers.embedding.*.base_url", "uri", "where it is asked", "its own"),
    Key("providers.embedding.*.model", "text", "its model", "its own"),
    Key("providers.embedding.*.api_key", "secret", "`${VARIABLE}` with its key"),
    Key(
        "maintenance.keep",
        "duration",
        "commits younger than this are kept, such as `30d`",
        "all",
        flag="--older-than",
    ),
    Key(
        "maintenance.commits",
        "number",
        "so many newest commits of every branch are kept",
        "all",
        flag="--keep",
    ),
    Key(
        "maintenance.optimize",
        "choice",
        "whether a server and `maintain` make files few and indexes fit",
        "auto",
        choices=("auto", "off"),
    ),
    Key("server.bind", "text", "where a server listens", "127.0.0.1:8080", flag="--bind"),
    Key("server.graphs", "list", "what it serves", "every graph in storage"),
    Key(
        "server.policy",
        "file",
        "`{file: path}`: who may list its graphs",
    ),
    Key("server.workers", "number", "how many processes it has", "1", flag="--workers", least=1),
    # What files said before version 1.
    Key("targets", "text", "graphs by name", newer="graphs"),
    Key("graphs.*.storage", "uri", "where the graph is", newer="graphs.*.uri"),
    Key("cli.graph", "text", "the graph that is meant", newer="default.graph"),
    Key("cli.target", "text", "the graph that is meant", newer="default.graph"),
    Key("cli.branch", "text", "the branch that is meant", newer="default.branch"),
    Key(
        "cli.output_format",
        "choice",
        "how rows are printed",
        choices=_FORMATS,
        newer="output.format",
    ),
    Key(
        "cli.table_max_column_width",
        "number",
        "the widest a column gets",
        newer="output.table_max_column_width",
        least=8,
    ),
    Key(
        "cli.table_cell_layout",
        "choice",
        "what becomes of text that is wider",
        choices=_LAYOUTS,
        newer="output.table_cell_layout",
    ),
    Key(
        "cli.actor",
        "text",
        "who is recorded, if `operator.actor` says nobody",
        newer="-",
        flag="--as",
    ),
    Key("server.graph", "text", "the one graph that is served", newer="server.graphs"),
    Key("server.target", "text", "the one graph that is served", newer="server.graphs"),
    Key("policy.file", "path", "the policy of the served graph", newer="graphs.*.policy"),
    Key("queries", "path", "stored queries of the served graph", newer="graphs.*.queries"),
    Key(
        "auth.env_file",
        "path",
        "a file below the project with variables that are not set",
        newer="-",
    ),
    Key(
        "aliases.*.command",
        "choice",
        "what the query does, which is checked",
        choices=("read", "query", "change", "mutate"),
        newer="-",
    ),
    Key("aliases.*.target", "text", "the graph it is asked of", newer="aliases.*.graph"),
)

OPERATOR: tuple[Key, ...] = (
    Key("operator.actor", "text", "who is recorded by direct writes", flag="--as"),
    Key("servers.*.url", "uri", "the address of a server you know", flag="--server"),
    Key("clusters.*.root", "uri", "the root of a cluster you know", flag="--cluster"),
    Key("defaults.server", "text", "the server that is meant", flag="--server"),
    Key("defaults.store", "uri", "the graph in storage that is meant", flag="--store"),
    Key(
        "defaults.default_graph",
        "text",
        "which graph of the server",
        flag="--graph",
        variable=GRAPH,
    ),
    Key(
        "defaults.output",
        "choice",
        "how rows are printed",
        "table",
        choices=_FORMATS,
        flag="--format, --json",
    ),
    Key("defaults.table_max_column_width", "number", "the widest a column gets", "80", least=8),
    Key(
        "defaults.table_cell_layout",
        "choice",
        "what becomes of text that is wider",
        "truncate",
        choices=_LAYOUTS,
    ),
    Key("profiles.*.server", "text", "a profile's server: its name or its URL"),
    Key("profiles.*.cluster", "text", "or its cluster"),
    Key("profiles.*.store", "uri", "or its graph in storage"),
    Key("profiles.*.default_graph", "text", "which graph of that"),
    Key("aliases.*.server", "text", "the server it is asked of"),
    Key("aliases.*.graph", "text", "which graph of that server, or of the project"),
    Key("aliases.*.branch", "text", "the branch it is asked of"),
    Key("aliases.*.query", "text", "a stored query, or a `.gq` file"),
    Key("aliases.*.name", "text", "which query of the file", "the only one"),
    Key("aliases.*.args", "list", "the parameters that further words are, in their order"),
    Key("aliases.*.params", "text", "parameters with their values"),
    Key("aliases.*.format", "choice", "how its rows are printed", choices=_FORMATS),
)


def children(keys: tuple[Key, ...], parts: tuple[str, ...]) -> Mapping[str, None]:
    """The names that may stand below a path, in the order of the table."""
    depth = len(parts)
    found = [
        key.parts[depth]
        for key in keys
        if len(key.parts) > depth
        and all(one in (NAMED, part) for one, part in zip(key.parts, parts, strict=False))
    ]
    return dict.fromkeys(found)


def key_at(keys: tuple[Key, ...], path: str) -> Key | None:
    """The key of a path whose names are `*`."""
    return next((key for key in keys if key.path == path), None)


def rows(keys: tuple[Key, ...], file: str) -> list[tuple[str, str, str, str, str, str]]:
    """What the page about configuration has of every key: one row of cells each."""
    return [
        (
            f"`{key.path}`",
            f"`{file}`",
            key.about if key.newer in (None, "-") else f"{key.about}: now `{key.newer}`",
            "-" if key.default is None else key.default,
            "-" if key.variable is None else f"`{key.variable}`",
            ", ".join(f"`{flag}`" for flag in (key.flag or "").split(", ") if flag) or "-",
        )
        for key in keys
    ]
