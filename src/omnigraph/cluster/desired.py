"""What is wanted: `cluster.yaml` with every file that it names, checked against each other.

Owns reading those files, compiling schemas, type-checking stored queries against them, and
checking policies. Looks at no storage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from omnigraph.cluster.layout import Root
from omnigraph.config.cluster.diagnostics import Diagnostics
from omnigraph.config.cluster.digests import (
    blob_policy,
    config_digest,
    digest_of,
    digest_of_values,
    graph_digest,
)
from omnigraph.config.cluster.document import (
    CLUSTER,
    ClusterDocument,
    GraphDeclaration,
    PolicyDeclaration,
    QueryDeclaration,
)
from omnigraph.config.cluster.parse import FILE, parse_cluster
from omnigraph.errors import BadRequest, LanguageError, OmniGraphError, SchemaError
from omnigraph.evolve.contract import first_schema
from omnigraph.lang.diagnostics import as_error, nearest_name
from omnigraph.lang.query.compile import check_query, parse_source
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.source import Source
from omnigraph.policy.compiled import CompiledPolicy
from omnigraph.policy.parse import parse_rules
from omnigraph.storage.objects.location import Location


@dataclass(frozen=True, slots=True)
class Resource:
    """One thing that a cluster has: its address, its digest, and the file it was read from."""

    address: str
    kind: str
    digest: str
    path: str | None = None
    content: bytes = field(default=b"", repr=False)
    metadata: Mapping[str, object] = field(default_factory=dict)
    """What the ledger keeps beside the digest."""


@dataclass(frozen=True, slots=True)
class Desired:
    """Everything that is wanted."""

    config_dir: Path
    document: ClusterDocument
    resources: Mapping[str, Resource]
    dependencies: tuple[tuple[str, str], ...]
    """What needs what, by address."""

    @property
    def digest(self) -> str:
        """The digest of the whole configuration."""
        return config_digest(self.document.parsed, self.digests)

    @property
    def digests(self) -> dict[str, str]:
        """The digest of every resource."""
        return {address: one.digest for address, one in sorted(self.resources.items())}

    @property
    def storage(self) -> Location:
        """The storage root."""
        return storage_of(self.config_dir, self.document.storage)


def storage_of(config_dir: Path, storage: str | None) -> Location:
    """The storage root that a file names; by itself, the directory it is in."""
    if storage is None:
        return Location.parse(str(config_dir))
    return Location.parse(storage if "://" in storage else str(config_dir / storage))


def read_document(config_dir: Path, found: Diagnostics) -> ClusterDocument | None:
    """The file of a directory; None, and errors, if it cannot be used."""
    if not config_dir.is_dir():
        found.error(
            "config_dir_not_found",
            str(config_dir),
            f"there is no such directory: --config names the one that {FILE} is in",
        )
        return None
    path = config_dir / FILE
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        found.error("cluster_config_read_error", str(path), f"cannot be read: {reason}")
        return None
    document = parse_cluster(text, found)
    if document is None:
        return None
    try:
        storage_of(config_dir, document.storage)
    except OmniGraphError as error:
        found.error("invalid_storage_root", "storage", error.message)
        return None
    return document


def find_root(config_dir: Path, found: Diagnostics) -> Root | None:
    """Where the state is, for those who need nothing else of the configuration.

    What is wrong with the rest of the file is not their business.
    """
    told = Diagnostics()
    document = read_document(config_dir, told)
    if document is None:
        for one in told.found:
            found.add(one)
        return None
    return Root(storage_of(config_dir, document.storage))


def read_desired(config_dir: Path, found: Diagnostics) -> Desired | None:
    """Everything that is wanted, as far as it can be told; errors say what cannot."""
    document = read_document(config_dir, found)
    if document is None:
        return None
    reader = _Reader(config_dir, found)
    for provider in document.providers.values():
        address = f"provider.embedding.{provider.name}"
        digest = digest_of_values(provider.profile)
        kept = {"embedding_profile": provider.profile}
        reader.add(Resource(address, "embedding_provider", digest, metadata=kept))
    for graph in document.graphs.values():
        reader.add_graph(graph)
    for policy in document.policies.values():
        reader.add_policy(policy)
    reader.require_unchanged()
    dependencies = tuple(sorted(set(reader.dependencies)))
    return Desired(config_dir, document, reader.resources, dependencies)


class _Reader:
    """Reads the files that a declaration names, each once."""

    def __init__(self, config_dir: Path, found: Diagnostics) -> None:
        self.found = found
        self.resources: dict[str, Resource] = {}
        self.dependencies: list[tuple[str, str]] = []
        self._dir = config_dir
        self._read: dict[Path, bytes] = {}

    def add(self, resource: Resource) -> None:
        """One more resource."""
        self.resources[resource.address] = resource

    def require_unchanged(self) -> None:
        """Refuse files that somebody has written to while they were read."""
        for path, content in self._read.items():
            try:
                is_same = path.read_bytes() == content
            except OSError:
                is_same = False
            if not is_same:
                self.found.error(
                    "resource_content_changed",
                    str(path),
                    "it was changed while it was being read: run the command again",
                )

    def _content(self, path: Path) -> bytes:
        if path not in self._read:
            self._read[path] = path.read_bytes()
        return self._read[path]

    def _source(self, path: Path, shown: str) -> tuple[Source, bytes]:
        content = self._content(path)
        return Source(content.decode("utf-8-sig"), shown), content

    # -- graphs --------------------------------------------------------------------------

    def add_graph(self, graph: GraphDeclaration) -> None:
        """A graph, its schema and its queries."""
        key = f"graphs.{graph.id}"
        address, schema = f"graph.{graph.id}", f"schema.{graph.id}"
        if not graph.external_blobs:
            self.found.warn(
                "external_blob_ingress_default_deny",
                f"{key}.external_blobs",
                "no base is allowed: blobs that lie elsewhere are refused",
            )
        content, catalog = self._schema(graph.schema, f"{key}.schema")
        if content is None:
            return
        self.add(Resource(schema, "schema", digest_of(content), graph.schema, content))
        self.dependencies.append((schema, address))
        queries = self._queries(graph, catalog)
        provider = None
        kept: dict[str, object] = {}
        if graph.embedding_provider is not None:
            name = f"provider.embedding.{graph.embedding_provider}"
            provider = (name, self.resources[name].digest)
            kept["embedding_provider"] = name
            self.dependencies.append((address, name))
        blobs = blob_policy(graph.external_blobs)
        if blobs is not None:
            kept["external_blob_policy"] = blobs
        digest = graph_digest(graph.id, digest_of(content), queries, provider, blobs)
        self.add(Resource(address, "graph", digest, metadata=kept))

    def _schema(self, path: str, key: str) -> tuple[bytes | None, Catalog | None]:
        try:
            source, content = self._source(self._dir / path, path)
        except (OSError, UnicodeDecodeError) as error:
            self.found.error("schema_file_missing", key, _unreadable(path, error))
            return None, None
        try:
            return content, first_schema(source).catalog
        except LanguageError as error:
            # What does not parse is one thing, what parses and means nothing another.
            if isinstance(error, SchemaError):
                self.found.error("schema_catalog_error", key, error.report)
            else:
                self.found.error("schema_parse_error", key, error.report)
        except OmniGraphError as error:
            self.found.error("schema_catalog_error", key, error.message)
        return content, None

    def _queries(self, graph: GraphDeclaration, catalog: Catalog | None) -> dict[str, str]:
        digests: dict[str, str] = {}
        for declared in graph.queries:
            for path, shown in self._files(declared):
                for name, content in self._in_file(declared, path, shown, catalog):
                    address = f"query.{graph.id}.{name}"
                    if name in digests:
                        self.found.error(
                            "duplicate_query_name",
                            declared.key,
                            f"graph {graph.id} has two queries `{name}`, in "
                            f"{self.resources[address].path} and {shown}: rename one",
                        )
                        continue
                    digests[name] = digest_of(content)
                    self.add(Resource(address, "query", digests[name], shown, content))
                    self.dependencies.append((address, f"schema.{graph.id}"))
        return digests

    def _files(self, declared: QueryDeclaration) -> Iterator[tuple[Path, str]]:
        path = self._dir / declared.path
        if declared.name is None and path.is_dir():
            try:
                names = sorted(one.name for one in path.iterdir() if one.suffix == ".gq")
            except OSError as error:
                self.found.error(
                    "query_dir_unreadable", declared.key, _unreadable(declared.path, error)
                )
                return
            if not names:
                self.found.warn(
                    "query_dir_empty", declared.key, f"{declared.path} has no .gq file at its top"
                )
            for name in names:
                yield path / name, f"{declared.path.rstrip('/')}/{name}"
            return
        yield path, declared.path

    def _in_file(
        self, declared: QueryDeclaration, path: Path, shown: str, catalog: Catalog | None
    ) -> Iterator[tuple[str, bytes]]:
        try:
            source, content = self._source(path, shown)
        except (OSError, UnicodeDecodeError) as error:
            self.found.error("query_file_missing", declared.key, _unreadable(shown, error))
            return
        try:
            queries = parse_source(source).queries
        except LanguageError as error:
            self.found.error("query_parse_error", declared.key, error.report)
            return
        names = [query.name.text for query in queries]
        if declared.name is not None and declared.name not in names:
            nearest = nearest_name(declared.name, names)
            hint = f"; did you mean `{nearest}`?" if nearest else ""
            self.found.error(
                "query_key_mismatch",
                declared.key,
                f"{shown} has no query `{declared.name}`, but {', '.join(names) or 'none'}{hint}",
            )
            return
        if catalog is None:
            self.found.warn(
                "query_typecheck_skipped",
                declared.key,
                f"{shown} was not checked, since the schema of its graph is not sound",
            )
        for query in queries:
            if declared.name not in (None, query.name.text):
                continue
            if catalog is not None:
                compiled, problems = check_query(source, query, catalog)
                if compiled is None:
                    report = as_error(problems).report
                    self.found.error("query_typecheck_error", declared.key, report)
            yield query.name.text, content

    # -- policies ------------------------------------------------------------------------

    def add_policy(self, policy: PolicyDeclaration) -> None:
        """A policy bundle."""
        key, address = f"policies.{policy.name}", f"policy.{policy.name}"
        try:
            source, content = self._source(self._dir / policy.file, policy.file)
        except (OSError, UnicodeDecodeError) as error:
            self.found.error("policy_file_missing", key, _unreadable(policy.file, error))
            return
        try:
            policy_of(source.text, policy.file, policy.name, is_of_cluster=policy.is_of_cluster)
        except OmniGraphError as error:
            self.found.error("policy_invalid", key, error.message)
            return
        kept = {"applies_to": list(policy.addresses)}
        self.add(
            Resource(address, "policy", digest_of(content), policy.file, content, metadata=kept)
        )
        bound = [one for one in policy.addresses if one != CLUSTER]
        self.dependencies += [(address, one) for one in bound]


def policy_of(text: str, file: str, name: str, *, is_of_cluster: bool) -> CompiledPolicy:
    """The policy of a bundle; its actions have to be on what it is bound to."""
    rules = parse_rules(text, file, name)
    wanted = "server" if is_of_cluster else "graph"
    if rules.rules and rules.kind != wanted:
        raise BadRequest(
            f"{file}: its actions are on a {rules.kind}, and it is bound to "
            f"{'the cluster' if is_of_cluster else 'graphs'}"
        )
    return CompiledPolicy.of(rules)


def _unreadable(path: str, error: OSError | UnicodeDecodeError) -> str:
    reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
    return f"{path} cannot be read: {reason}"
