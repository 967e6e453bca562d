"""Reading `cluster.yaml`: text in, declarations out, and everything that is wrong with it.

Owns which keys there are and what goes together within the file. Reads no other file.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import cast, get_args

from omnigraph.config.cluster.blob_bases import read_bases
from omnigraph.config.cluster.diagnostics import Diagnostics
from omnigraph.config.cluster.document import (
    CLUSTER,
    BlobBase,
    ClusterDocument,
    EmbeddingProvider,
    GraphDeclaration,
    PolicyDeclaration,
    ProviderKind,
    QueryDeclaration,
)
from omnigraph.config.cluster.yaml_tree import Tree, plain, read_tree
from omnigraph.lang.diagnostics import did_you_mean, name_hint

FILE = "cluster.yaml"
FUTURE = ("apply", "env_file", "pipelines", "embeddings", "ui", "aliases", "bindings")
KEYS = ("version", "metadata", "storage", "state", "providers", "graphs", "policies")
GRAPH = ("schema", "queries", "embedding_provider", "external_blobs")
PROVIDER = ("kind", "provider", "base_url", "model", "api_key")
POLICY = ("file", "applies_to")
_KINDS: tuple[str, ...] = get_args(ProviderKind)
_KEYLESS = ("local", "mock")
_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_ENVIRONMENT = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_ADDRESSED = re.compile(r"(graph|schema|query|policy|provider)\.(.+)")


def parse_cluster(text: str, found: Diagnostics) -> ClusterDocument | None:
    """The declarations of a text; None if they cannot be told."""
    root = read_tree(text, found)
    if root is None:
        return None
    if not root.is_mapping:
        root.wrong("the file is a mapping: version, graphs, policies and others")
        return None
    for name, value in root.members().items():
        if name in FUTURE:
            value.error("future_phase_field", f"`{name}` is reserved for later: leave it out")
    keys = root.known(KEYS, FUTURE)
    _require_version(root, keys.get("version"))
    providers = _providers(keys.get("providers"))
    graphs = {
        id_: graph
        for id_, value in _named(keys.get("graphs")).items()
        if (graph := _graph(id_, value, providers)) is not None
    }
    declared = set(_named(keys.get("graphs")))
    if "graphs" not in keys:
        root.wrong("the key `graphs` is missing: name at least one graph, or write `graphs: {}`")
    return ClusterDocument(
        _label(keys.get("metadata")),
        None if "storage" not in keys else keys["storage"].text(),
        _locks(keys.get("state")),
        providers,
        graphs,
        _policies(keys.get("policies"), declared),
        plain(root.node),
    )


def _require_version(root: Tree, value: Tree | None) -> None:
    if value is None:
        root.error("unsupported_cluster_config_version", "write `version: 1`")
    elif (text := value.text()) is not None and text != "1":
        value.error(
            "unsupported_cluster_config_version",
            f"version {text:.40} is not known to this program: write `version: 1`",
        )


def _label(value: Tree | None) -> str | None:
    name = None if value is None else value.known(("name",)).get("name")
    if name is None:
        return None
    if name.is_empty or not str(getattr(name.node, "value", "x")).strip():
        name.error("empty_metadata_name", "a name must not be blank: write one, or leave it out")
        return None
    return name.text()


def _locks(value: Tree | None) -> bool:
    keys = {} if value is None else value.known(("backend", "lock"))
    backend = keys.get("backend")
    if backend is not None and (text := backend.text()) not in (None, CLUSTER):
        backend.error(
            "unsupported_state_backend",
            f"there is no backend `{text:.40}`: write `cluster`, or leave it out",
        )
    lock = keys["lock"].flag() if "lock" in keys else None
    return lock is not False


def _named(value: Tree | None) -> dict[str, Tree]:
    """The members of a mapping whose names become parts of addresses."""
    found = {}
    for name, member in ({} if value is None else value.members()).items():
        if _ID.fullmatch(name):
            found[name] = member
        else:
            member.error(
                "invalid_resource_id",
                f"`{name:.60}` is no id: a letter or _ first, then letters, digits, _ and -",
            )
    return found


# -- providers --------------------------------------------------------------------------


def _providers(value: Tree | None) -> dict[str, EmbeddingProvider]:
    section = None if value is None else value.known(("embedding",)).get("embedding")
    found = {}
    for name, member in _named(section).items():
        provider = _provider(name, member)
        if provider is not None:
            found[name] = provider
    return found


def _provider(name: str, value: Tree) -> EmbeddingProvider | None:
    if not value.is_mapping:
        value.error("invalid_embedding_provider", "a provider has a `kind` and an `api_key`")
        return None
    keys = value.known(PROVIDER)
    spelled = [key for key in ("kind", "provider") if key in keys]
    if len(spelled) > 1:
        keys["provider"].error(
            "invalid_embedding_provider", "`provider` is another word for `kind`"
        )
    kind = keys[spelled[0]].text() if spelled else _KINDS[0]
    if kind is None:
        return None
    if kind not in _KINDS:
        hint = did_you_mean(kind, _KINDS) or f"the kinds are {', '.join(_KINDS)}"
        keys[spelled[0]].error("invalid_embedding_provider", f"there is no kind `{kind}`: {hint}")
        return None
    base_url = keys["base_url"].text() if "base_url" in keys else None
    if base_url is not None and not base_url.startswith(("http://", "https://")):
        keys["base_url"].error("invalid_embedding_provider", "a base_url is http:// or https://")
    model = keys["model"].text() if "model" in keys else None
    return EmbeddingProvider(
        name, cast("ProviderKind", kind), base_url, model, _key(value, keys.get("api_key"), kind)
    )


def _key(provider: Tree, value: Tree | None, kind: str) -> str | None:
    text = None if value is None else value.text()
    if value is None or text is None:
        if kind not in _KEYLESS:
            provider.error(
                "embedding_api_key_required", f"a provider of kind {kind} needs api_key: ${{NAME}}"
            )
        return None
    reference = _ENVIRONMENT.fullmatch(text)
    if reference is None:
        # What is written there may be the secret itself: it is not repeated.
        value.error(
            "embedding_api_key_inline",
            "a key is not written into the file: name an environment variable, ${NAME}",
        )
        return None
    return reference[1]


# -- graphs -----------------------------------------------------------------------------


def _graph(id_: str, value: Tree, providers: Collection[str]) -> GraphDeclaration | None:
    for name, member in value.members().items():
        if name == "streaming":
            member.error(
                "removed_streaming_declaration",
                "`streaming` is not a key any more: take it out, and load streams with stream_load",
            )
    keys = value.known(GRAPH, ("streaming",))
    if "schema" not in keys:
        value.wrong("the key `schema` is missing: the path of a .pg file")
        return None
    schema = keys["schema"].text()
    bases: tuple[BlobBase, ...] = ()
    if "external_blobs" in keys:
        bases = read_bases(keys["external_blobs"])
    if schema is None:
        return None
    return GraphDeclaration(
        id_,
        schema,
        _queries(keys.get("queries")),
        _provider_of(keys.get("embedding_provider"), providers),
        bases,
    )


def _queries(value: Tree | None) -> tuple[QueryDeclaration, ...]:
    if value is None or value.is_empty:
        return ()
    if value.is_list:
        items = [(item, item.text()) for item in value.items()]
        return tuple(QueryDeclaration(text, item.path) for item, text in items if text is not None)
    if not value.is_mapping:
        text = value.text()
        return () if text is None else (QueryDeclaration(text, value.path),)
    found = []
    for name, member in _named(value).items():
        file = member.known(("file",)).get("file")
        if file is None:
            member.wrong("a query has a `file`")
        elif (path := file.text()) is not None:
            found.append(QueryDeclaration(path, member.path, name))
    return tuple(found)


def _provider_of(value: Tree | None, providers: Collection[str]) -> str | None:
    text = None if value is None else value.text()
    if value is None or text is None:
        return None
    name = text.removeprefix("provider.embedding.")
    if name == text and _ADDRESSED.fullmatch(text):
        value.error(
            "wrong_kind_reference", f"{text} is no embedding provider: write its name alone"
        )
        return None
    if name not in providers:
        hint = name_hint(name, providers) or "write it under providers.embedding"
        value.error(
            "dangling_embedding_provider_reference",
            f"there is no embedding provider `{name}`; {hint}",
        )
        return None
    return name


# -- policies ---------------------------------------------------------------------------


def _policies(value: Tree | None, graphs: Collection[str]) -> dict[str, PolicyDeclaration]:
    found: dict[str, PolicyDeclaration] = {}
    bound: dict[str, str] = {}
    for name, member in _named(value).items():
        keys = member.known(POLICY)
        file = keys["file"].text() if "file" in keys else None
        if "file" not in keys:
            member.wrong("the key `file` is missing: the path of a policy file")
        scopes = _scopes(member, keys.get("applies_to"), graphs)
        for scope in scopes:
            if scope in bound:
                where = "the cluster" if scope == CLUSTER else f"graph {scope}"
                member.error(
                    "duplicate_policy_binding",
                    f"{where} has the policy {bound[scope]} already: one for each, put the rules "
                    "into one file",
                )
            bound.setdefault(scope, name)
        if file is not None and scopes:
            found[name] = PolicyDeclaration(name, file, tuple(scopes))
    return found


def _scopes(policy: Tree, value: Tree | None, graphs: Collection[str]) -> list[str]:
    if value is None or not value.is_list or not value.node.value:
        policy.error(
            "policy_missing_applies_to",
            "say what it is for: applies_to is a list of graphs, or [cluster]",
        )
        return []
    found: list[str] = []
    for item in value.items():
        text = item.text()
        scope = None if text is None else _scope(text, item, graphs)
        if scope is not None and scope not in found:
            found.append(scope)
    if CLUSTER in found and len(found) > 1:
        value.error(
            "policy_mixed_binding_kinds",
            "a policy is for the cluster or for graphs, not both: use two files",
        )
        return []
    return found


def _scope(text: str, item: Tree, graphs: Collection[str]) -> str | None:
    if text == CLUSTER:
        return text
    addressed = _ADDRESSED.fullmatch(text)
    if addressed is not None and addressed[1] != "graph":
        item.error("wrong_kind_reference", f"a policy is for graphs, and {text} is none")
        return None
    id_ = text if addressed is None else addressed[2]
    if id_ not in graphs:
        hint = name_hint(id_, graphs) or "write it under graphs"
        item.error("dangling_graph_reference", f"there is no graph `{id_}`; {hint}")
        return None
    return id_
