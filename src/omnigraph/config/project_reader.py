"""Reading `omnigraph.yaml`: every mistake at once, each with its line and column.

Owns the way from the text of a file to a project. Unknown keys are remarked, what is wrong is
refused; nothing of the environment is read, and no other file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, cast, get_args

from omnigraph.config.keys import BlobScope, CellLayout, Output, ProviderKind
from omnigraph.config.older_dialect import COMMANDS, PROVIDER_KIND
from omnigraph.config.project import (
    Alias,
    BlobBase,
    EmbeddingProvider,
    Layout,
    Maintenance,
    ProjectFile,
    ProjectGraph,
    ServerSection,
)
from omnigraph.config.sections import Sections, is_given, line_of, members_of, yaml_or_none
from omnigraph.config.variables import env_file_below, key_problem, key_variable, token_problem
from omnigraph.errors import BadRequest
from omnigraph.lang.diagnostics import name_hint
from omnigraph.yaml_values import Value, read_values

LARGEST = 1 << 20


def read_project(path: Path) -> ProjectFile:
    """The project of a file."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise BadRequest(f"cannot read {path}: {reason}") from None
    if len(data) > LARGEST:
        raise BadRequest(f"{path} is too large for a file that people write")
    return parse_project(text, path)


def parse_project(text: str, path: Path) -> ProjectFile:
    """The project of a text, as if it stood in a file."""
    return _Reader(path).read(text)


class _Reader(Sections):
    """One file on its way to a project."""

    def read(self, text: str) -> ProjectFile:
        tree = yaml_or_none(text, str(self.path))
        if tree is None:
            return ProjectFile(self.path.absolute())
        root = self.sections(read_values(str(self.path), text, self.errors))
        if not self.note(root, "version"):
            self.is_older = True
        elif root["version"].text() not in (None, "1"):
            root["version"].say("this program reads version 1, and files without a version")
        graphs = self.graphs(root)
        default, output = self.section(root, "default"), self.section(root, "output")
        cli, auth = self.section(root, "cli"), self.section(root, "auth")
        roots = self.roots(self.section(root, "query"))
        aliases = self.aliases(root)
        embedding = self.providers(root)
        server = self.section(root, "server")
        policy = self.section(root, "policy")
        if "actor" in cli:
            self.warn(cli["actor"], "says who you are, which is yours to say: `operator.actor`")
        project = ProjectFile(
            self.path.absolute(),
            self.text(self.section(root, "project"), "project", "name"),
            graphs,
            self.text(default, "default", "graph"),
            self.text(default, "default", "branch"),
            self.text(cli, "cli", "actor"),
            self.layout(output),
            roots,
            aliases,
            embedding,
            self.maintenance(self.section(root, "maintenance")),
            self.server(server),
            self.path_of(policy, "policy", "file"),
            self.queries(root, "queries"),
            self.env_file(auth),
            self.is_older,
            self.lines,
        )
        self.references(project, root, default, server, aliases)
        self.errors.raise_if_any()
        return replace(project, warnings=tuple(self.warnings))

    def graphs(self, root: Mapping[str, Value]) -> dict[str, ProjectGraph]:
        if not is_given(root, "graphs"):
            return {}
        found = {}
        for name, entry in self.entries(root["graphs"], ("graphs",)):
            where = f"graphs.{name}"
            written = self.text(entry, where, "uri")
            if written is None:
                root["graphs"].mapped()[name].say("a graph needs `uri:`, where it is")
                continue
            uri = self.uri(entry["uri"], written)
            token = self.text(entry, where, "bearer_token_env")
            problem = None if token is None else token_problem(token)
            if problem is not None:
                entry["bearer_token_env"].say(problem)
            found[name] = ProjectGraph(
                name,
                uri,
                written,
                self.text(entry, where, "branch"),
                self.path_of(entry, where, "schema"),
                self.queries(entry, "queries", where),
                self.file(entry, where, "policy"),
                self.text(entry, where, "embedding_provider"),
                self.external_blobs(entry, where),
                token,
            )
        return found

    def aliases(self, root: Mapping[str, Value]) -> dict[str, Alias]:
        if not is_given(root, "aliases"):
            return {}
        found = {}
        for name, entry in self.entries(root["aliases"], ("aliases",)):
            where = f"aliases.{name}"
            query = self.text(entry, where, "query")
            if query is None:
                root["aliases"].mapped()[name].say("an alias needs `query:`, what it stands for")
                continue
            command = self.choice(entry, where, "command", COMMANDS)
            self.is_older |= command is not None
            args = self.texts(entry, where, "args") or ()
            found[name] = Alias(
                name,
                query,
                self.text(entry, where, "name"),
                args,
                self.params(entry, where),
                None,
                self.text(entry, where, "graph"),
                self.text(entry, where, "branch"),
                cast("Output | None", self.choice(entry, where, "format", get_args(Output))),
                cast("Literal['query', 'mutate'] | None", command and COMMANDS[command]),
                self.path.name,
            )
        return found

    def providers(self, root: Mapping[str, Value]) -> dict[str, EmbeddingProvider]:
        found: dict[str, EmbeddingProvider] = {}
        section = self.section(root, "providers")
        if not is_given(section, "embedding"):
            return found
        for name, entry in self.entries(section["embedding"], ("providers", "embedding")):
            where = f"providers.embedding.{name}"
            if PROVIDER_KIND in entry:
                entry.setdefault("kind", entry.pop(PROVIDER_KIND))
            kind = self.choice(entry, where, "kind", get_args(ProviderKind))
            base_url = self.text(entry, where, "base_url")
            if base_url is not None and not base_url.startswith(("http://", "https://")):
                entry["base_url"].say("this must be http(s)://…")
            found[name] = EmbeddingProvider(
                name,
                cast("ProviderKind", kind or "openai-compatible"),
                base_url,
                self.text(entry, where, "model"),
                self.key(entry, where, base_url),
            )
        return found

    def key(self, entry: Mapping[str, Value], where: str, base_url: str | None) -> str | None:
        """The variable with the key of a provider; the key itself is refused, and not shown."""
        if not is_given(entry, "api_key"):
            return None
        text = entry["api_key"].text() or ""
        variable = key_variable(text)
        self.note(entry, "api_key", where)
        if variable is None:
            entry["api_key"].say('a secret is not written here: api_key: "${VARIABLE}" names where')
            return None
        problem = key_problem(variable, base_url)
        if problem is not None:
            entry["api_key"].say(problem)
        return variable

    def maintenance(self, found: Mapping[str, Value]) -> Maintenance | None:
        if not found:
            return None
        keep = self.text(found, "maintenance", "keep")
        optimize = self.choice(found, "maintenance", "optimize", ("auto", "off"))
        return Maintenance(
            None if keep is None else self.duration(found["keep"], keep),
            self.number(found, "maintenance", "commits", 0),
            optimize != "off",
        )

    def server(self, found: dict[str, Value]) -> ServerSection:
        graphs = self.texts(found, "server", "graphs")
        for old in ("graph", "target"):
            if graphs is None and is_given(found, old):
                self.is_older = True
                one = found[old].text()
                graphs = None if one is None else (one,)
                found["graphs"] = found[old]
                self.lines["server.graphs"] = line_of(found[old])
        return ServerSection(
            self.text(found, "server", "bind"),
            graphs,
            self.file(found, "server", "policy"),
            self.number(found, "server", "workers", 1),
        )

    def layout(self, found: Mapping[str, Value]) -> Layout:
        formats, layouts = get_args(Output), get_args(CellLayout)
        return Layout(
            cast("Output | None", self.choice(found, "output", "format", formats)),
            self.number(found, "output", "table_max_column_width", 8),
            cast("CellLayout | None", self.choice(found, "output", "table_cell_layout", layouts)),
        )

    def roots(self, found: Mapping[str, Value]) -> tuple[Path, ...]:
        texts = self.texts(found, "query", "roots") or ()
        return tuple(self.directory / text for text in texts)

    def env_file(self, found: Mapping[str, Value]) -> Path | None:
        text = self.text(found, "auth", "env_file")
        if text is None:
            return None
        try:
            return env_file_below(self.directory, text)
        except BadRequest as error:
            found["env_file"].say(error.message)
            return None

    def references(
        self,
        project: ProjectFile,
        root: Mapping[str, Value],
        default: Mapping[str, Value],
        server: Mapping[str, Value],
        aliases: Mapping[str, Alias],
    ) -> None:
        """What names something else in the file has to name something that is there."""
        names = project.graphs
        if project.default_graph is not None and project.default_graph not in names:
            self.missing(default["graph"], "graph", project.default_graph, names)
        for name in project.server.graphs or ():
            if name not in names:
                self.missing(server["graphs"], "graph", name, names)
        for name, graph in names.items():
            wanted = graph.embedding_provider
            if wanted is None or wanted in ("local", "mock"):
                continue
            if wanted.removeprefix("provider.embedding.") not in project.embedding:
                entry = members_of(root["graphs"]).get(name)
                if entry is not None:
                    self.missing(entry, "embedding provider", wanted, project.embedding)
        for name, alias in aliases.items():
            if alias.graph is not None and alias.graph not in names:
                entry = members_of(root["aliases"])[name]
                self.missing(entry, "graph", alias.graph, names)

    def missing(self, value: Value, what: str, name: str, known: Collection[str]) -> None:
        hint = name_hint(name, known) or "the file has none"
        value.say(f"there is no {what} `{name}`; {hint}")

    def external_blobs(self, entry: Mapping[str, Value], where: str) -> tuple[BlobBase, ...]:
        if not self.note(entry, "external_blobs", where):
            return ()
        members = entry["external_blobs"].known({"allow"})
        bases = []
        for item in members["allow"].items() if "allow" in members else ():
            one = item.known({"base", "scope"}, {"base"})
            base = one["base"].text() if "base" in one else None
            scope = one["scope"].choice(get_args(BlobScope)) if "scope" in one else "embedded_only"
            if base is not None and "://" not in base:
                one["base"].say("this must be a URI, such as s3://media/")
            if base is not None and scope in get_args(BlobScope):
                bases.append(BlobBase(base, cast("BlobScope", scope)))
        return tuple(bases)
