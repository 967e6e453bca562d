"""The reference of the HTTP API as a page, made from the description of a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

HEAD = """\
# HTTP reference

Every route of a server, made from its own description (`/openapi.json`). How they are used is told
in [serving a graph](serving.md), what may go wrong [there too](serving.md#errors).
"""


def page(described: Mapping[str, Any]) -> str:
    """The page for a description."""
    lines = [HEAD]
    for tag in described["tags"]:
        lines.append(f"## {tag['name'].title()}\n")
        for path, methods in described["paths"].items():
            for method, operation in methods.items():
                if tag["name"] in operation["tags"]:
                    lines += _operation(path, method, operation)
    lines.append("## Bodies\n")
    for name, schema in sorted(described["components"]["schemas"].items()):
        if not name.endswith("Query"):
            lines += _body(name, schema)
    return "\n".join(lines)


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    old = " Deprecated." if operation.get("deprecated") else ""
    yield f"### {method.upper()} {path}\n"
    yield f"`{operation['operationId']}`: {operation['summary']}{old}\n"
    named = [one for one in operation["parameters"] if one["in"] != "path"]
    if named:
        yield "| Parameter | In | |\n|---|---|---|"
        for one in named:
            mark = "required" if one["required"] else _kind(one["schema"])
            yield f"| `{one['name']}` | {one['in']} | {one.get('description', mark)} |"
        yield ""
    if "requestBody" in operation:
        yield f"Asks with {_contents(operation['requestBody']['content'])}.\n"
    yield f"Answers with {_contents(operation['responses']['200']['content'])}.\n"
    failures = [f"`{status}`" for status in operation["responses"] if status >= "400"]
    yield f"May fail with {', '.join(failures)}.\n"


def _contents(contents: Mapping[str, Any]) -> str:
    return " or ".join(
        f"`{type_}` {_link(one['schema'])}".strip() for type_, one in contents.items()
    )


def _link(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return ", ".join(filter(None, map(_link, schema["anyOf"])))
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    return ""


def _kind(schema: Mapping[str, Any]) -> str:
    if link := _link(schema):
        return link
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(schema.get("type", "anything"))


def _body(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {name}\n"
    said = schema.get("description", "").partition("\n")[0]
    if said:
        yield f"{said}\n"
    properties = schema.get("properties", {})
    if properties:
        yield "| Field | | |\n|---|---|---|"
        for field, one in properties.items():
            mark = "always" if field in schema.get("required", ()) else ""
            yield f"| `{field}` | {_kind(one)} | {mark} |"
        yield ""
