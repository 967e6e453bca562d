"""What a graph needs, found without the program under test: with Lance and plain sets alone.

Slow, small, and meant to be read. The files that are left after a thorough cleanup must
be exactly these.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import lance

import omnigraph as og
from omnigraph.manifest.entries import Commit, StoredVersion
from omnigraph.storage.logs.head_log import QUEUE
from omnigraph.write.publish.turns import LOCK

LAST = 2**64 - 1


@dataclass(frozen=True)
class Lineage:
    """Every commit that a live branch descends from, and the line of each branch."""

    commits: dict[str, Commit]
    lists: dict[str, list[Commit]]
    oldest: dict[str, str | None]
    """By branch, the commit before which all were reclaimed by an earlier cleanup."""

    @classmethod
    def of(cls, graph: og.Graph) -> Lineage:
        branches = graph.branches.list()
        every = [one for branch in branches for one in graph.commits.list(branch, merged=True)]
        lists = {branch: graph.commits.list(branch) for branch in branches}
        root = Path(graph.location.path)
        oldest = {
            branch: head_of(root, branch_id).get("oldest_retained_commit_id")
            for branch, branch_id in names(root).items()
        }
        return cls({one.id: one for one in every}, lists, oldest)

    @property
    def listed(self) -> set[str]:
        """The commits on the line of a branch."""
        return {one.id for found in self.lists.values() for one in found}

    def ancestors(self, commit: str) -> set[str]:
        """A commit and all it descends from."""
        seen: set[str] = set()
        waiting = [commit]
        while waiting:
            found = waiting.pop()
            if found in seen:
                continue
            seen.add(found)
            one = self.commits[found]
            waiting += [parent for parent in (one.parent_id, one.merged_parent_id) if parent]
        return seen

    def merge_bases(self) -> set[str]:
        """For every two branches the commits that they have in common and none above another."""
        found: set[str] = set()
        for one, other in combinations({commits[0].id for commits in self.lists.values()}, 2):
            common = self.ancestors(one) & self.ancestors(other)
            above = {older for id_ in common for older in self.ancestors(id_) - {id_}}
            found |= common - above
        return found

    def needed(self, keep: int) -> set[str]:
        """The commits that must stay readable when so many are kept."""
        newest: set[str] = set()
        for branch, found in self.lists.items():
            ids = [one.id for one in found]
            oldest = self.oldest[branch]
            last = len(ids) if oldest is None else ids.index(oldest) + 1
            newest |= set(ids[: min(keep, last)])
        return newest | self.merge_bases()


def names(root: Path) -> dict[str, str]:
    """The ids of the branches by their names, from the newest version of the names."""
    versions = sorted((root / "__refs").glob("*.json"))
    stored = json.loads(versions[-1].read_bytes())["names"] if versions else {}
    return {"main": "main", **{name: found[0] for name, found in stored.items()}}


def manifest_of(root: Path, branch_id: str) -> Path:
    return root / "__manifest" / branch_id


def head_of(root: Path, branch_id: str, version: int | None = None) -> dict[str, Any]:
    """What the head of a branch says of it."""
    (row,) = (
        row
        for row in head_rows(manifest_of(root, branch_id), version)
        if row["object_type"] == "graph_head"
    )
    found: dict[str, Any] = json.loads(row["metadata"])
    return found


def needed_versions(root: Path, keep: int = 1) -> set[StoredVersion]:
    """The versions of manifests whose tables must stay, of those that are there."""
    lineage = Lineage.of(og.open(root, read_only=True))
    wanted = {lineage.commits[id_].stored for id_ in lineage.needed(keep)}
    wanted |= {newest_version(root, branch_id) for branch_id in names(root).values()}
    return {one for one in wanted if manifest_file(root, one).exists()}


def newest_version(root: Path, branch_id: str) -> StoredVersion:
    return StoredVersion(branch_id, lance.dataset(str(manifest_of(root, branch_id))).version)


def log_versions(root: Path) -> set[StoredVersion]:
    """The versions in whose logs branches find the history that they were forked with."""
    found: set[StoredVersion] = set()
    for branch_id in names(root).values():
        origin = head_of(root, branch_id).get("forked_from", {"history": []})
        found |= {StoredVersion(*one) for one in origin["history"]}
    return found


def manifest_file(root: Path, stored: StoredVersion) -> Path:
    name = f"{LAST - stored.version:020}.manifest"
    return manifest_of(root, stored.branch_id) / "_versions" / name


def reachable(root: Path, keep: int = 1) -> set[str]:
    """Every file of a graph that somebody needs."""
    found: set[Path] = set(root.glob("*"))
    found |= set((root / "_graph_commit_recoveries.lance").rglob("*"))
    found |= set((root / "__refs").rglob("*"))
    found |= set((root / "__recovery").glob("*.revoked"))
    tables: dict[Path, set[int]] = {}
    for stored in needed_versions(root, keep):
        place = manifest_of(root, stored.branch_id)
        for path, pin in pins(place, stored.version):
            tables.setdefault(root / path, set()).add(pin)
    kept = needed_versions(root, keep) | log_versions(root)
    gone = {stored.branch_id for stored in kept} - {*names(root).values()}
    # They say that those branches have ended, as long as anything of them is there.
    for stored in kept | {newest_version(root, branch_id) for branch_id in gone}:
        place = manifest_of(root, stored.branch_id)
        found |= set(version_files(place, stored.version))
        found |= {place / "_versions" / "latest_version_hint.json", place / "_collected.json"}
    for table, versions in tables.items():
        found.add(table / "_versions" / "latest_version_hint.json")
        for version in {1, *versions}:
            found |= set(version_files(table, version))
    return {path.relative_to(root).as_posix() for path in found if path.is_file()}


def version_files(place: Path, version: int) -> Iterator[Path]:
    """The files of one version of a dataset, wherever they lie."""
    dataset = lance.dataset(str(place), version=version)
    name = f"d{version}" if version >= 2**63 else f"{LAST - version:020}"
    yield place / "_versions" / f"{name}.manifest"
    transaction = dataset.read_transaction(version)
    assert transaction is not None
    yield place / "_transactions" / f"{transaction.read_version}-{transaction.uuid}.txn"
    for fragment in dataset.get_fragments():
        for file in fragment.metadata.files:
            assert file.base_id is None, "a graph that was moved would not find it"
            data = place / "data" / file.path
            yield data
            yield from data.with_suffix("").rglob("*")
        if fragment.metadata.deletion_file is not None:
            yield place / fragment.metadata.deletion_file.path(fragment.fragment_id)
    for index in dataset.describe_indices():
        for segment in index.segments:
            yield from (place / "_indices" / str(segment.uuid)).rglob("*")


def pins(place: Path, version: int) -> Iterator[tuple[str, int]]:
    """The path and the Lance version of every table that a version of the manifest shows."""
    paths: dict[tuple[int, int], str] = {}
    versions: dict[tuple[int, int], tuple[int, int]] = {}
    gone: dict[tuple[int, int], int] = {}
    for row in head_rows(place, version):
        identity = row["stable_table_id"], row["table_incarnation_id"]
        match row["object_type"]:
            case "table":
                paths[identity] = row["location"]
            case "table_version":
                pinned = row["table_version"], json.loads(row["metadata"])["lance_version"]
                versions[identity] = max(versions.get(identity, (0, 0)), pinned)
            case "table_tombstone":
                gone[identity] = max(gone.get(identity, 0), row["table_version"])
    for identity, (at, pin) in versions.items():
        if gone.get(identity, 0) < at:
            yield paths[identity], pin


def head_rows(place: Path, version: int | None = None) -> list[dict[str, Any]]:
    """The rows of the head fragment: the newest."""
    fragments = lance.dataset(str(place), version=version).get_fragments()
    head = max(fragments, key=lambda fragment: fragment.fragment_id)
    return head.to_table().to_pylist()  # type: ignore[no-any-return]


def stored(root: Path) -> set[str]:
    """Every file that is there but the locks of writers, which a branch has while it lives."""
    return {
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and not _is_lock(path)
    }


def _is_lock(path: Path) -> bool:
    directory = path.parent
    is_live = (directory.parent / "_versions").is_dir()
    return directory.name == QUEUE and path.name == LOCK and is_live


# Writers make no secret of needing them again.
SPARED = {"data", "_indices", "_deletions", QUEUE, "__recovery"}


def hollow(root: Path) -> list[str]:
    """The directories that are empty for no reason."""
    return [
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_dir() and not any(path.iterdir()) and path.name not in SPARED
    ]
