"""The rules of annotations: where each may stand and what value it takes.

Owns every rule that needs one annotation list and its property only. Unknown
annotations are nobody's business and pass. Never looks at other declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from omnigraph.lang.cursor import shorten
from omnigraph.lang.diagnostics import Phase, Reporter
from omnigraph.lang.schema.check.defaults import default_misfit
from omnigraph.lang.schema.syntax.tree import Annotation, Property

Owner = Literal["interface", "node", "edge"]

_ONCE = frozenset(
    {
        "default",
        "description",
        "embed",
        "index",
        "instruction",
        "key",
        "merge",
        "rename_from",
        "unique",
    }
)
"""Annotations that may stand once in one place; of others, a repetition is harmless."""

BODY_FORMS = {
    "key": "`@key(a, …)`",
    "unique": "`@unique(a, …)`",
    "index": "`@index(a, …)`",
    "range": "`@range(a, low..high)`",
    "check": '`@check(a, "pattern")`',
}
"""How the constraints of a body are written."""

_PROPERTY_ONLY = frozenset({"default", "embed", "index", "key", "unique"})
_BODY_ONLY = frozenset({"range", "check"})


def check_header(annotations: Iterable[Annotation], owner: Owner, reporter: Reporter) -> None:
    """Check the annotations of a node or edge type."""
    for annotation in _each_once(annotations, reporter):
        name = annotation.name
        if name in _BODY_ONLY:
            _refuse_bare(reporter, annotation)
        elif name in _PROPERTY_ONLY:
            _refuse(reporter, annotation, f"`@{name}` belongs on a property, not on the {owner}")
        elif name in ("description", "instruction"):
            _needs_text(reporter, annotation)
        elif name == "rename_from":
            _check_rename(annotation, reporter)
        elif name == "merge":
            _check_merge(annotation, reporter)


def check_property(property_: Property, owner: Owner, reporter: Reporter) -> None:
    """Check the annotations of one property."""
    for annotation in _each_once(property_.annotations, reporter):
        name = annotation.name
        if name in _BODY_ONLY:
            _refuse_bare(reporter, annotation)
        elif name == "embed" and owner == "edge":
            _refuse(reporter, annotation, "edge properties take no `@embed`")
        elif name == "key" and owner == "edge":
            hint = f"write `@key(src, dst, {shorten(property_.name.text)})` in the edge's body"
            _refuse(reporter, annotation, "edge properties take no `@key`", hint=hint)
        elif name in ("merge", "instruction"):
            _refuse(reporter, annotation, f"`@{name}` belongs on a node or an edge, not a property")
        elif name == "description":
            _needs_text(reporter, annotation)
        elif name == "rename_from":
            _check_rename(annotation, reporter)
        else:
            check = _PROPERTY_CHECKS.get(name)
            if check is not None:
                check(annotation, property_, reporter)


def _each_once(annotations: Iterable[Annotation], reporter: Reporter) -> list[Annotation]:
    found: dict[str, Annotation] = {}
    others: list[Annotation] = []
    for annotation in annotations:
        if annotation.name not in _ONCE:
            others.append(annotation)
        elif annotation.name in found:
            _refuse(reporter, annotation, f"`@{annotation.name}` stands here twice")
        else:
            found[annotation.name] = annotation
    return [*found.values(), *others]


def _refuse(
    reporter: Reporter, annotation: Annotation, message: str, *, hint: str | None = None
) -> None:
    reporter.report(annotation.span, message, phase=Phase.PARSE, hint=hint)


def _refuse_bare(reporter: Reporter, annotation: Annotation) -> None:
    """Without arguments these would be opaque notes, which nobody can have meant."""
    _refuse(
        reporter,
        annotation,
        f"`@{annotation.name}` needs its arguments: {BODY_FORMS[annotation.name]}",
    )


def _needs_text(reporter: Reporter, annotation: Annotation) -> bool:
    if annotation.value is not None and annotation.value.text.strip():
        return True
    _refuse(reporter, annotation, f'`@{annotation.name}` needs a text: `@{annotation.name}("…")`')
    return False


def _no_options(reporter: Reporter, annotation: Annotation) -> None:
    for name, _ in annotation.options:
        message = f"`@{annotation.name}` takes no option `{shorten(name.text)}`"
        reporter.report(name.span, message, phase=Phase.PARSE)


def _check_rename(annotation: Annotation, reporter: Reporter) -> None:
    _needs_text(reporter, annotation)
    _no_options(reporter, annotation)


def _check_merge(annotation: Annotation, reporter: Reporter) -> None:
    if annotation.value is None or annotation.value.text != "row":
        _refuse(reporter, annotation, "`@merge` is written `@merge(row)`")
    _no_options(reporter, annotation)


# -- annotations whose rule depends on the type of the property -----------------------


def _check_key(annotation: Annotation, property_: Property, reporter: Reporter) -> None:
    name = shorten(property_.name.text)
    if not property_.type.is_plain:
        _refuse(reporter, annotation, f"`{name}` of type {property_.type} cannot be a key")
    elif property_.type.nullable:
        message = f"the key `{name}` cannot be nullable"
        _refuse(reporter, annotation, message, hint=f"write `{name}: {_required(property_)}`")


def _required(property_: Property) -> str:
    return str(property_.type.without_null)


def _check_unique(annotation: Annotation, property_: Property, reporter: Reporter) -> None:
    if not property_.type.is_plain:
        name = shorten(property_.name.text)
        _refuse(reporter, annotation, f"`{name}` of type {property_.type} cannot be unique")


def _check_index(annotation: Annotation, property_: Property, reporter: Reporter) -> None:
    # A vector is no plain value, yet it can be indexed.
    if property_.type.is_list or property_.type.is_blob:
        name = shorten(property_.name.text)
        _refuse(reporter, annotation, f"`{name}` of type {property_.type} cannot be indexed")


def _check_embed(annotation: Annotation, property_: Property, reporter: Reporter) -> None:
    if not property_.type.is_vector:
        message = f"`@embed` fills vectors; `{shorten(property_.name.text)}` is {property_.type}"
        _refuse(reporter, annotation, message)
    if annotation.value is None or not annotation.value.text.strip():
        message = "`@embed` needs the property to embed: `@embed(title)`"
        _refuse(reporter, annotation, message)
    for name, _ in annotation.options:
        if name.text != "model":
            message = f"`@embed` has no option `{shorten(name.text)}`"
            hint = "its only option is `model`"
            reporter.report(name.span, message, phase=Phase.PARSE, hint=hint)


def _check_default(annotation: Annotation, property_: Property, reporter: Reporter) -> None:
    _no_options(reporter, annotation)
    if annotation.value is None:
        _refuse(reporter, annotation, "`@default` needs a value: `@default(0)`")
        return
    misfit = default_misfit(annotation.value, property_.type)
    if misfit is not None:
        reporter.report(annotation.value.span, misfit, phase=Phase.PARSE)


_PROPERTY_CHECKS: dict[str, Callable[[Annotation, Property, Reporter], None]] = {
    "default": _check_default,
    "embed": _check_embed,
    "index": _check_index,
    "key": _check_key,
    "unique": _check_unique,
}
