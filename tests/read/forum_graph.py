"""A small forum: messages of two types, things of several, and edges that are alternatives."""

from __future__ import annotations

from typing import Any

SCHEMA = """\
interface Message { number: I64 @key  text: String?  at: I32 }
interface Tagged { tag: String? }
interface Nobody { it: I32 }
node Person { name: String @key }
node Post implements Message, Tagged { title: String?  size: I32? }
node Comment implements Message { size: String? }
node Photo implements Tagged { name: String @key  size: I32  title: String? }
edge Knows: Person -> Person { since: I32?  weight: I32? }
edge Follows: Person -> Person { since: I32 }
edge LikesPost: Person -> Post { on: I32 }
edge LikesComment: Person -> Comment { on: I32 }
edge ReplyOf: Comment -> Post
"""


def _node(type_: str, **data: Any) -> dict[str, Any]:
    return {"type": type_, "data": data}


def _edge(type_: str, source: str, target: str, **data: Any) -> dict[str, Any]:
    return {"edge": type_, "from": source, "to": target, "data": data}


ROWS = [
    *(_node("Person", name=name) for name in ("ann", "ben", "cat")),
    _node("Post", number=1, text="post 1", at=1, title="one", tag="x", size=10),
    _node("Post", number=2, text="post 2", at=2, title="two", size=20),
    _node("Comment", number=11, text="comment 11", at=1, size="big"),
    _node("Comment", number=12, text="comment 12", at=2, size="small"),
    _node("Comment", number=13, text=None, at=3),
    _node("Photo", name="1", tag="x", size=3, title="sea"),
    _edge("Knows", "ann", "ben", id="k1", since=1),
    _edge("Knows", "ben", "ben", id="k2"),
    _edge("Follows", "ann", "ben", id="f1", since=2),
    _edge("Follows", "ben", "cat", id="f2", since=3),
    _edge("Follows", "cat", "cat", id="f3", since=4),
    _edge("LikesPost", "ann", "1", id="l1", on=5),
    _edge("LikesPost", "ben", "2", id="l2", on=6),
    _edge("LikesComment", "ann", "11", id="l3", on=7),
    _edge("LikesComment", "cat", "13", id="l4", on=8),
    _edge("ReplyOf", "11", "1", id="r1"),
    _edge("ReplyOf", "12", "1", id="r2"),
    _edge("ReplyOf", "13", "2", id="r3"),
]
