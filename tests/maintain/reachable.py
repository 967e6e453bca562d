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
from urllib.parse import unquote

import lance

import omnigraph as og
from omnigraph.manifest.entries import Commit

LAST = 2**64 - 1
Version = tuple[str, int]
"""A branch and a version of its manifest."""


@dataclass(frozen=True)
class Lineage:
    """Every commit that a live branch lists, and the heads."""

    commits: dict[str, Commit]
    lists: dict[str, list[Commit]]

    @classmethod
    def of(cls, graph: og.Graph) -> Lineage:
        lists = {branch: graph.commits.list(branch) for branch in graph.branches.list()}
        return cls({one.id: one for found in lists.values() for one in found}, lists)

    def ancestors(self, commit: str) -> set[str]:
        """A commit and all it descends from, as far as it is listed anywhere."""
        seen: set[str] = set()
        waiting = [commit]
        while waiting:
            found = waiting.pop()
            if found in seen or found not in self.commits:
                continue
            seen.add(found)
            one = self.commits[found]
            waiting += [parent for parent in (one.parent_id, one.merged_parent_id) if parent]
        return seen

    def merge_bases(self) -> set[str]:
        """For every two branches the commit they would be merged on."""
        found = set()
        for one, other in combinations([commits[0].id for commits in self.lists.values()], 2):
            common = self.ancestors(one) & self.ancestors(other)
            above = {older for id_ in common for older in self.ancestors(id_) - {id_}}
            lowest = common - above
            if lowest:
                newest = max(lowest, key=lambda id_: (self.commits[id_].created_at, id_))
                found.add(newest)
        return found

    def needed(self, keep: int) -> set[str]:
        """The commits that must stay readable when so many are kept."""
        newest = {one.id for found in self.lists.values() for one in found[:keep]}
        return newest | self.merge_bases()


def version_of(commit: Commit) -> Version:
    return commit.branch or "main", commit.manifest_version


def manifest_of(root: Path, branch: str) -> Path:
    return root / "__manifest" if branch == "main" else root / "__manifest" / "tree" / branch


def references(root: Path) -> dict[str, dict[str, Any]]:
    """The branches besides main, from the files in which Lance keeps them."""
    return {
        unquote(path.stem): json.loads(path.read_text())
        for path in (root / "__manifest" / "_refs" / "branches").glob("*.json")
    }


def needed_versions(root: Path, keep: int = 1) -> set[Version]:
    """The versions of the manifest that must stay, of those that are there."""
    lineage = Lineage.of(og.open(root, read_only=True))
    wanted = {version_of(lineage.commits[id_]) for id_ in lineage.needed(keep)}
    branches = references(root)
    for branch, found in branches.items():
        wanted.add((found["parentBranch"] or "main", found["parentVersion"]))
        wanted.add((branch, lance.dataset(str(manifest_of(root, branch))).version))
    wanted.add(("main", lance.dataset(str(root / "__manifest")).version))
    return {one for one in wanted if manifest_file(root, *one).exists()}


def manifest_file(root: Path, branch: str, version: int) -> Path:
    return manifest_of(root, branch) / "_versions" / f"{LAST - version:020}.manifest"


def reachable(root: Path, keep: int = 1) -> set[str]:
    """Every file of a graph that somebody needs."""
    found: set[Path] = set(root.glob("*"))
    found |= set((root / "_graph_commit_recoveries.lance").rglob("*"))
    found |= set((root / "__manifest" / "_refs").rglob("*"))
    tables: dict[Path, set[int]] = {}
    for branch, version in needed_versions(root, keep):
        place = manifest_of(root, branch)
        found |= set(version_files(place, version))
        found.add(place / "_versions" / "latest_version_hint.json")
        for path, pin in pins(place, version):
            tables.setdefault(root / path, set()).add(pin)
    for branch in ("main", *references(root)):
        found.add(manifest_of(root, branch) / "_versions" / "latest_version_hint.json")
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
    bases = {base: Path(found.path) for base, found in dataset.base_paths().items()}
    for fragment in dataset.get_fragments():
        for file in fragment.metadata.files:
            data = (place if file.base_id is None else bases[file.base_id]) / "data" / file.path
            yield data
            yield from data.with_suffix("").rglob("*")
        if fragment.metadata.deletion_file is not None:
            yield place / fragment.metadata.deletion_file.path(fragment.fragment_id)
    for index in dataset.describe_indices():
        for segment in index.segments:
            yield from (place / "_indices" / str(segment.uuid)).rglob("*")


def pins(place: Path, version: int) -> Iterator[tuple[str, int]]:
    """The path and the Lance version of every table that a version of the manifest shows."""
    fragments = lance.dataset(str(place), version=version).get_fragments()
    head = max(fragments, key=lambda fragment: fragment.fragment_id).to_table().to_pylist()
    paths: dict[tuple[int, int], str] = {}
    versions: dict[tuple[int, int], tuple[int, int]] = {}
    gone: dict[tuple[int, int], int] = {}
    for row in head:
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


def stored(root: Path) -> set[str]:
    """Every file that is there."""
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


# Writers make no secret of needing them again.
SPARED = {"data", "_indices", "_deletions", "branches", "__recovery"}


def hollow(root: Path) -> list[str]:
    """The directories that are empty for no reason."""
    return [
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_dir() and not any(path.iterdir()) and path.name not in SPARED
    ]
