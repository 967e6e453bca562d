"""The YAML of a cluster file as a tree of values with their places.

Owns reading it: keys that nobody knows, keys written twice and values of the wrong shape are
noted under their path, with line and column. Knows nothing of clusters but the codes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import yaml

from omnigraph.config.cluster.diagnostics import Diagnostics, ErrorCode
from omnigraph.lang.diagnostics import name_hint

_NULLS = ("", "~", "null", "Null", "NULL")
_TRUE, _FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")


@dataclass(frozen=True, slots=True)
class Tree:
    """One value of the file."""

    node: yaml.Node
    path: str
    found: Diagnostics
    name: yaml.Node | None = None
    """The key that it is written under."""

    def error(self, code: ErrorCode, message: str) -> None:
        """Note what is wrong with it."""
        mark = (self.name or self.node).start_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}"
        self.found.error(code, self.path or "cluster.yaml", f"{message} ({place})")

    def wrong(self, message: str) -> None:
        """Note that it has the wrong shape."""
        self.error("invalid_cluster_yaml", message)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is written there."""
        node = self.node
        return isinstance(node, yaml.ScalarNode) and not node.style and node.value in _NULLS

    @property
    def is_mapping(self) -> bool:
        """Whether it has members."""
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        """Whether it has items."""
        return isinstance(self.node, yaml.SequenceNode)

    def text(self) -> str | None:
        """A scalar as it was written; None, and an error, for anything else."""
        if not isinstance(self.node, yaml.ScalarNode):
            self.wrong(f"this must be a text, and is a {_kind(self.node)}")
            return None
        text = str(self.node.value).strip()
        if self.is_empty or not text:
            self.wrong("this must not be blank")
            return None
        return text

    def flag(self) -> bool | None:
        """A truth value."""
        text = self.text()
        if text is None or text in (*_TRUE, *_FALSE):
            return None if text is None else text in _TRUE
        self.wrong(f"this is true or false, not `{text:.60}`")
        return None

    def members(self) -> dict[str, Tree]:
        """The members of a mapping by name; none, and an error, for anything else."""
        if self.is_empty:
            return {}
        if not isinstance(self.node, yaml.MappingNode):
            self.wrong(f"this must be a mapping (name: value), and is a {_kind(self.node)}")
            return {}
        found: dict[str, Tree] = {}
        for key, value in self.node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.wrong("a name must be a text")
                continue
            name = str(key.value).strip()
            member = Tree(value, f"{self.path}.{name}" if self.path else name, self.found, key)
            if name in found:
                member.error("duplicate_yaml_key", f"`{name}` is written twice")
            else:
                found[name] = member
        return found

    def known(self, names: Collection[str], elsewhere: Collection[str] = ()) -> dict[str, Tree]:
        """The members that somebody knows; others are errors, but for those looked at elsewhere."""
        found = self.members()
        for name, value in found.items():
            if name not in names and name not in elsewhere:
                hint = name_hint(name, names)
                value.wrong(f"there is no key `{name}` here" + (f"; {hint}" if hint else ""))
        return {name: value for name, value in found.items() if name in names}

    def items(self) -> Iterator[Tree]:
        """The items of a list; none, and an error, for anything else."""
        if not isinstance(self.node, yaml.SequenceNode):
            if not self.is_empty:
                self.wrong(f"this must be a list, and is a {_kind(self.node)}")
            return
        for at, value in enumerate(self.node.value):
            yield Tree(value, f"{self.path}[{at}]", self.found)


def read_tree(text: str, found: Diagnostics) -> Tree | None:
    """The whole of a file; None, and an error, if it is no YAML."""
    try:
        # The loader that takes every scalar for text, and makes no objects of any kind.
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f" (line {mark.line + 1}, column {mark.column + 1})"
        what = getattr(error, "problem", None) or "it cannot be read"
        found.error("invalid_cluster_yaml", "cluster.yaml", f"not YAML: {what}{place}")
        return None
    except RecursionError:
        found.error("invalid_cluster_yaml", "cluster.yaml", "it nests too deeply to be read")
        return None
    if root is None:
        found.error("invalid_cluster_yaml", "cluster.yaml", "the file is empty")
        return None
    return Tree(root, "", found)


def plain(node: yaml.Node) -> object:
    """A value without its places; scalars are texts."""
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [plain(value) for value in node.value]
    return str(node.value)


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "mapping"
    return "list" if isinstance(node, yaml.SequenceNode) else "text"
