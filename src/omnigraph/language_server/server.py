"""The server: what editors ask over stdin and stdout, in the Language Server Protocol.

Owns the protocol and nothing else: every answer is made by the modules beside it. Writes no file;
stdout belongs to the protocol.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from lsprotocol import types as lsp
from pygls import uris
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from omnigraph.errors import BadRequest, LanguageError
from omnigraph.lang.lint_report import Severity
from omnigraph.lang.query.format import format_queries
from omnigraph.lang.schema.syntax.format import format_schema
from omnigraph.lang.source import Source, Span
from omnigraph.language_server.completion import Offer, Sort, completion
from omnigraph.language_server.definitions import definitions
from omnigraph.language_server.diagnostics import query_remarks, schema_remarks
from omnigraph.language_server.hover import hover
from omnigraph.language_server.meaning import Text
from omnigraph.language_server.places import Encoding, Place, offset_of, range_of
from omnigraph.language_server.renames import renamable, rename
from omnigraph.language_server.workspace import Files
from omnigraph.version import __version__

_SEVERITIES: dict[Severity, lsp.DiagnosticSeverity] = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "info": lsp.DiagnosticSeverity.Information,
}
_SORTS: dict[Sort, lsp.CompletionItemKind] = {
    "keyword": lsp.CompletionItemKind.Keyword,
    "type": lsp.CompletionItemKind.Class,
    "edge": lsp.CompletionItemKind.Reference,
    "property": lsp.CompletionItemKind.Property,
    "function": lsp.CompletionItemKind.Function,
    "variable": lsp.CompletionItemKind.Variable,
    "annotation": lsp.CompletionItemKind.Keyword,
}
_FORMATTERS: dict[str, Callable[[Source], str]] = {".pg": format_schema, ".gq": format_queries}


class Server(LanguageServer):
    """A server for one editor, and the files that it has open."""

    def __init__(self) -> None:
        # A change brings the whole text: the protocol knows other ends of lines than Python.
        super().__init__("omnigraph", __version__, lsp.TextDocumentSyncKind.Full)
        self.files = Files()
        self._uris: dict[Path, str] = {}

    @property
    def encoding(self) -> Encoding:
        """The units that both sides agreed to count in."""
        agreed = str(getattr(self.workspace.position_encoding, "value", "utf-16"))
        return "utf-8" if agreed == "utf-8" else "utf-32" if agreed == "utf-32" else "utf-16"

    def take(self, uri: str, text: str) -> None:
        """A text was opened, or is another now: everything that speaks of it is looked at."""
        path = path_of(uri)
        self._uris[path] = uri
        self.files.opened(path, text)
        self.look_at(path)

    def leave(self, uri: str) -> None:
        """A text was closed."""
        path = path_of(uri)
        self.files.closed(path)
        self._uris.pop(path, None)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))
        self._look_at_queries_of(path)

    def look_at(self, path: Path) -> None:
        """Publish what is said of an open file, and of the open queries if it is a schema."""
        source = self.files.source(path)
        if source is None or path not in self._uris:
            return
        if path.suffix == ".pg":
            remarks = schema_remarks(source)
        elif path.suffix == ".gq":
            remarks = query_remarks(source, self.files.schema_source(path))
        else:
            return
        found = [
            lsp.Diagnostic(
                self.range(source, remark.span),
                remark.message,
                severity=_SEVERITIES[remark.severity],
                code=remark.code,
                source="omnigraph",
            )
            for remark in remarks
        ]
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(self._uris[path], found)
        )
        self._look_at_queries_of(path)

    def _look_at_queries_of(self, path: Path) -> None:
        if path.suffix == ".pg":
            for other in self.files.open_paths:
                if other.suffix == ".gq":
                    self.look_at(other)

    def uri_of(self, path: Path) -> str:
        """A file as the editor calls it."""
        return self._uris.get(path) or path.as_uri()

    def range(self, source: Source, span: Span) -> lsp.Range:
        """A span as the protocol has it."""
        start, end = range_of(source, span, self.encoding)
        return lsp.Range(lsp.Position(*start), lsp.Position(*end))

    def at(
        self, document: lsp.TextDocumentIdentifier, position: lsp.Position
    ) -> tuple[Text, int] | None:
        """The text that is meant, and the offset in it."""
        text = self.files.text(path_of(document.uri))
        if text is None:
            return None
        place = Place(position.line, position.character)
        return text, offset_of(text.source, place, self.encoding)

    def renamed(self, text: Text, offset: int, name: str) -> lsp.WorkspaceEdit:
        """The edits of a rename, in every file that it changes."""
        schema = text.schema.source
        queries = self.files.queries_of(Path(schema.name))
        try:
            edits = rename(text, offset, name, queries)
        except BadRequest as error:
            raise JsonRpcException(str(error), lsp.LSPErrorCodes.RequestFailed.value) from None
        return lsp.WorkspaceEdit(
            {
                self.uri_of(Path(source.name)): [
                    lsp.TextEdit(self.range(source, span), written)
                    for span, written in sorted(edits[source.name])
                ]
                for source in (schema, *queries)
                if source.name in edits
            }
        )


def path_of(uri: str) -> Path:
    """The file that an editor means; a text that was never saved has a name and no directory."""
    named = uris.to_fs_path(uri)
    return Path(named if named is not None else uri).resolve()


def make_server() -> Server:
    """A server with everything it can do."""
    server = Server()

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def _open(found: Server, params: lsp.DidOpenTextDocumentParams) -> None:
        found.take(params.text_document.uri, params.text_document.text)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def _change(found: Server, params: lsp.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        found.take(uri, found.workspace.get_text_document(uri).source)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def _close(found: Server, params: lsp.DidCloseTextDocumentParams) -> None:
        found.leave(params.text_document.uri)

    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION,
        lsp.CompletionOptions(trigger_characters=[".", ":", "@", "$", "|"]),
    )
    def _complete(found: Server, params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        meant = found.at(params.text_document, params.position)
        return [] if meant is None else [_item(offer) for offer in completion(*meant)]

    def _item(offer: Offer) -> lsp.CompletionItem:
        return lsp.CompletionItem(
            offer.word,
            kind=_SORTS[offer.sort],
            detail=offer.detail or None,
            documentation=_markdown(offer.about) if offer.about else None,
        )

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def _hover(found: Server, params: lsp.HoverParams) -> lsp.Hover | None:
        meant = found.at(params.text_document, params.position)
        shown = None if meant is None else hover(*meant)
        if meant is None or shown is None:
            return None
        return lsp.Hover(_markdown(shown[1]), found.range(meant[0].source, shown[0]))

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def _define(found: Server, params: lsp.DefinitionParams) -> list[lsp.Location]:
        meant = found.at(params.text_document, params.position)
        if meant is None:
            return []
        schema = meant[0].schema.source
        return [
            lsp.Location(found.uri_of(Path(schema.name)), found.range(schema, span))
            for span in definitions(*meant)
        ]

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def _format(found: Server, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        path = path_of(params.text_document.uri)
        source, formatter = found.files.source(path), _FORMATTERS.get(path.suffix)
        if source is None or formatter is None:
            return []
        try:
            formatted = formatter(source)
        except LanguageError:
            # The mistakes are shown as diagnostics; until they are gone the text stays.
            return []
        if formatted == source.text:
            return []
        return [lsp.TextEdit(found.range(source, Span(0, len(source.text))), formatted)]

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    def _may_rename(found: Server, params: lsp.PrepareRenameParams) -> lsp.Range | None:
        meant = found.at(params.text_document, params.position)
        meaning = None if meant is None else renamable(*meant)
        if meant is None or meaning is None:
            return None
        return found.range(meant[0].source, meaning.word)

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    def _rename(found: Server, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        meant = found.at(params.text_document, params.position)
        return None if meant is None else found.renamed(*meant, params.new_name)

    return server


def serve() -> None:
    """Serve the editor that started this process, until it leaves."""
    # The library closes what it writes to; stdout itself is not its own.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        make_server().start_io(stdout=answers)


def _markdown(text: str) -> lsp.MarkupContent:
    return lsp.MarkupContent(lsp.MarkupKind.Markdown, text)
