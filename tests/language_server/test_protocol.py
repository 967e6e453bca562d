"""The server as an editor has it: a process that speaks the protocol over stdin and stdout."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient

from omnigraph.lang.query.format import format_queries
from omnigraph.lang.source import Source
from tests.language_server.examples import SCHEMA

PROGRAM = str(Path(sys.executable).with_name("omnigraph"))
BROKEN = "query q() { match { $p: Persn } return { $p.name } }\n"
SOUND = 'query q() { match { $p: Person { name: "😀" } } return { lower($p.name) as n } }\n'


class Editor(LanguageClient):
    """A client that waits for what the server publishes."""

    def __init__(self) -> None:
        super().__init__("editor", "1")
        self.published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()

        def take(params: lsp.PublishDiagnosticsParams) -> None:
            self.published.put_nowait(params)

        self.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(take)

    async def codes(self, uri: str) -> list[object]:
        """The codes of what is published next, which must be of this text."""
        found = await self.published.get()
        assert found.uri == uri
        return [one.code for one in found.diagnostics]


@pytest.mark.slow
def test_an_editor_and_the_server_understand_each_other(tmp_path: Path) -> None:
    asyncio.run(asyncio.wait_for(_conversation(tmp_path), 120))


async def _conversation(root: Path) -> None:
    schema, queries = root / "s.pg", root / "q.gq"
    schema.write_text(SCHEMA)
    uri = queries.as_uri()
    editor = Editor()
    await editor.start_io(PROGRAM, "lsp")
    answer = await editor.initialize_async(lsp.InitializeParams(lsp.ClientCapabilities()))
    assert answer.server_info is not None
    assert answer.server_info.name == "omnigraph"
    editor.initialized(lsp.InitializedParams())

    editor.text_document_did_open(
        lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "omnigraph-query", 1, BROKEN))
    )
    published = await editor.published.get()
    (mistake,) = published.diagnostics
    assert mistake.severity is lsp.DiagnosticSeverity.Error
    assert mistake.code == "T1"
    assert mistake.range == lsp.Range(lsp.Position(0, 24), lsp.Position(0, 29))

    _change(editor, uri, SOUND)
    assert await editor.codes(uri) == []

    await _ask(editor, uri, schema)
    await _rename(editor, uri, schema)
    await _change_and_format(editor, uri, schema)

    await editor.shutdown_async(None)
    editor.exit(None)
    process = editor._server
    assert process is not None
    assert await process.wait() == 0


async def _ask(editor: Editor, uri: str, schema: Path) -> None:
    document = lsp.TextDocumentIdentifier(uri)
    # The face takes two units of the protocol and one character of the text.
    name = SOUND.index("$p.name") + len("$p.") + 1
    place = lsp.Position(0, name + 1)
    offered = await editor.text_document_completion_async(lsp.CompletionParams(document, place))
    assert isinstance(offered, list)
    assert {one.label: one.detail for one in offered} == {"name": "String", "age": "I32?"}

    shown = await editor.text_document_hover_async(lsp.HoverParams(document, place))
    assert shown is not None
    assert shown.range == lsp.Range(lsp.Position(0, name), lsp.Position(0, name + 4))
    assert isinstance(shown.contents, lsp.MarkupContent)
    assert "name: String @key" in shown.contents.value

    person = lsp.Position(0, SOUND.index("Person"))
    found = await editor.text_document_definition_async(lsp.DefinitionParams(document, person))
    assert isinstance(found, list)
    line = next(n for n, text in enumerate(SCHEMA.splitlines()) if text.startswith("node Person"))
    start, end = lsp.Position(line, len("node ")), lsp.Position(line, len("node Person"))
    assert found == [lsp.Location(schema.as_uri(), lsp.Range(start, end))]


async def _rename(editor: Editor, uri: str, schema: Path) -> None:
    document = lsp.TextDocumentIdentifier(uri)
    place = lsp.Position(0, SOUND.index("Person"))
    word = lsp.Range(place, lsp.Position(0, place.character + len("Person")))
    params = lsp.PrepareRenameParams(document, place)
    assert await editor.text_document_prepare_rename_async(params) == word
    edit = await editor.text_document_rename_async(lsp.RenameParams(document, place, "Human"))
    assert edit is not None
    assert edit.changes is not None
    assert list(edit.changes[uri]) == [lsp.TextEdit(word, "Human")]
    assert len(edit.changes[schema.as_uri()]) == SCHEMA.count("Person")
    with pytest.raises(JsonRpcException, match="there is a type Film already"):
        await editor.text_document_rename_async(lsp.RenameParams(document, place, "Film"))


async def _change_and_format(editor: Editor, uri: str, schema: Path) -> None:
    document = lsp.TextDocumentIdentifier(uri)
    formatting = lsp.DocumentFormattingParams(document, lsp.FormattingOptions(4, True))
    (edit,) = await editor.text_document_formatting_async(formatting) or ()
    assert edit.range == lsp.Range(lsp.Position(0, 0), lsp.Position(1, 0))
    assert edit.new_text == format_queries(Source(SOUND))
    _change(editor, uri, "query q(")
    assert await editor.codes(uri) == ["parse_error"]
    assert not await editor.text_document_formatting_async(formatting)
    _change(editor, uri, SOUND)
    assert await editor.codes(uri) == []

    # A change of the schema is a change for the queries; a closed one is that of the disk again.
    item = lsp.TextDocumentItem(schema.as_uri(), "omnigraph-schema", 1, "node Other { x: I32 }")
    editor.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
    assert await editor.codes(schema.as_uri()) == []
    assert "T1" in await editor.codes(uri)
    closed = lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(schema.as_uri()))
    editor.text_document_did_close(closed)
    assert await editor.codes(schema.as_uri()) == []
    assert await editor.codes(uri) == []


def _change(editor: Editor, uri: str, text: str) -> None:
    editor.text_document_did_change(
        lsp.DidChangeTextDocumentParams(
            lsp.VersionedTextDocumentIdentifier(2, uri),
            [lsp.TextDocumentContentChangeWholeDocument(text)],
        )
    )
