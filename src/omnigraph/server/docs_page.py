"""The page that shows the description of the server: one file, which asks nobody else.

Owns its text. The description itself is fetched from the server that sent the page.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2rem; border-bottom: 1px solid #8886; text-transform: capitalize; }
summary { cursor: pointer; padding: .3rem 0; }
code, pre { font: 13px/1.45 ui-monospace, monospace; }
pre { overflow: auto; padding: .7rem; background: #8881; border-radius: 4px; }
.method { display: inline-block; min-width: 4.5rem; font-weight: 700; }
.old { opacity: .55; text-decoration: line-through; }
table { border-collapse: collapse; }
td { padding: .15rem 1rem .15rem 0; vertical-align: top; }
"""

_SCRIPT = """
const make = (tag, text, name) => {
  const found = document.createElement(tag);
  if (text !== undefined) found.textContent = text;
  if (name) found.className = name;
  return found;
};
const shown = (schemas, schema, depth) => {
  if (!schema || depth > 5) return '…';
  if (schema.$ref) return shown(schemas, schemas[schema.$ref.split('/').pop()], depth + 1);
  if (schema.enum) return schema.enum.join(' | ');
  if (schema.anyOf) return schema.anyOf.map(one => shown(schemas, one, depth)).join(' | ');
  if (schema.type === 'array') return [shown(schemas, schema.items || {}, depth + 1)];
  if (schema.properties) {
    const found = {};
    for (const [name, one] of Object.entries(schema.properties)) {
      const mark = (schema.required || []).includes(name) ? '' : '?';
      found[name + mark] = shown(schemas, one, depth + 1);
    }
    return found;
  }
  return schema.type || 'anything';
};
const block = (parent, title, value) => {
  parent.append(make('p', title), make('pre', JSON.stringify(value, null, 2)));
};
const operation = (schemas, path, method, one) => {
  const found = make('details'), head = make('summary');
  head.append(make('code', method.toUpperCase(), 'method'));
  head.append(make('code', path, one.deprecated ? 'old' : ''), ' ', one.summary);
  found.append(head);
  if ((one.parameters || []).length) {
    const table = make('table');
    for (const parameter of one.parameters) {
      const row = make('tr');
      row.append(make('td', parameter.name + (parameter.required ? '' : '?')));
      row.append(make('td', parameter.in), make('td', parameter.description || ''));
      row.append(make('td', JSON.stringify(shown(schemas, parameter.schema, 0))));
      table.append(row);
    }
    found.append(table);
  }
  if (one.requestBody) {
    for (const [type, body] of Object.entries(one.requestBody.content))
      block(found, 'asks with ' + type, shown(schemas, body.schema, 0));
  }
  for (const [type, body] of Object.entries(one.responses['200'].content || {}))
    block(found, 'answers with ' + type, shown(schemas, body.schema, 0));
  found.append(make('p', 'may fail with ' +
    Object.keys(one.responses).filter(status => status >= 400).join(', ')));
  return found;
};
fetch('openapi.json').then(answer => answer.json()).then(described => {
  const main = document.querySelector('main'), schemas = described.components.schemas;
  document.querySelector('#version').textContent = described.info.version;
  for (const tag of described.tags) {
    main.append(make('h2', tag.name));
    for (const [path, methods] of Object.entries(described.paths))
      for (const [method, one] of Object.entries(methods))
        if (one.tags.includes(tag.name)) main.append(operation(schemas, path, method, one));
  }
});
"""

PAGE = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>OmniGraph HTTP API</title>
<link rel="icon" href="data:,">
<style>{_STYLE}</style>
<h1>OmniGraph <small id="version"></small></h1>
<p>Everything this server answers; for programs as <a href="openapi.json">openapi.json</a>.</p>
<main></main>
<script>{_SCRIPT}</script>
</html>
"""


def _hash(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


POLICY = (
    "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    f"script-src 'sha256-{_hash(_SCRIPT)}'; style-src 'sha256-{_hash(_STYLE)}'"
)
