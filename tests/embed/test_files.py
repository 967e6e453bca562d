"""Embedding a file of records: the four modes, and what is not touched."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnigraph.cli.main import main
from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.embed.files import (
    EmbedFiles,
    EmbedSpec,
    RecordChoice,
    Selector,
    embed_file,
    read_seed,
    read_spec,
)
from omnigraph.embed.local import MockEmbedder
from omnigraph.errors import BadRequest, EmbeddingError
from tests.embed.vector_server import VectorServer, error

SPEC = {
    "dimension": 4,
    "types": {
        "Film": {"target": "meaning", "fields": ["title", "tags", "year", "good", "notes"]},
        "Person": {"target": "face", "fields": ["name"]},
    },
}
MOCK = EmbedderConfig("mock", "m")
EDGE = '{"edge": "ActedIn",   "from": "Ann", "to": "Rain", "data": {"x": 1.10}}'


def vector(text: str) -> Any:
    return MockEmbedder().embed([text], 4)[0]


@pytest.fixture
def spec(tmp_path: Path) -> EmbedSpec:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(SPEC))
    return read_spec(path)


class Folder:
    """A directory with an input and the output that is made of it."""

    def __init__(self, path: Path, spec: EmbedSpec) -> None:
        self.files = EmbedFiles(path / "in.jsonl", path / "out" / "out.jsonl", spec)

    def write(self, *lines: str | dict[str, Any], end: str = "\n") -> None:
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        self.files.input.write_text(end.join(texts) + end, newline="")

    @property
    def lines(self) -> list[str]:
        return self.files.output.read_text().splitlines()

    @property
    def data(self) -> list[Any]:
        return [json.loads(line).get("data") for line in self.lines]


@pytest.fixture
def folder(tmp_path: Path, spec: EmbedSpec) -> Folder:
    return Folder(tmp_path, spec)


def film(title: str, **data: Any) -> dict[str, Any]:
    return {"type": "Film", "data": {"title": title, **data}}


def is_vector(found: Any, text: str) -> bool:
    return np.array_equal(np.array(found, np.float32), vector(text))


# -- modes -------------------------------------------------------------------------


def test_what_is_missing_is_filled(folder: Folder) -> None:
    given = [1, 0, 0, 0]
    folder.write(
        film("Rain"),
        film("Snow", meaning=None),
        film("Hail", meaning=[]),
        film("Fog", meaning=given),
        {"type": "Person", "data": {"name": "Ann"}},
        {"type": "Other", "data": {"name": "x"}},
        EDGE,
    )
    summary = embed_file(folder.files, config=MOCK)
    assert asdict(summary) == {
        "input": str(folder.files.input),
        "output": str(folder.files.output),
        "records": 7,
        "selected_records": 5,
        "embedded_records": 4,
        "cleaned_records": 0,
        "mode": "fill_missing",
        "dimension": 4,
        "model": "m",
    }
    rain, snow, hail, fog, ann, other, _ = folder.data
    assert is_vector(rain["meaning"], "type: Film\ntitle: Rain")
    assert is_vector(snow["meaning"], "type: Film\ntitle: Snow")
    assert is_vector(hail["meaning"], "type: Film\ntitle: Hail")
    assert fog["meaning"] == given
    assert is_vector(ann["face"], "type: Person\nname: Ann")
    assert other == {"name": "x"}


def test_everything_is_made_anew(folder: Folder) -> None:
    folder.write(film("Rain", meaning=[1, 0, 0, 0]), film("Snow"))
    summary = embed_file(folder.files, mode="reembed_all", config=MOCK)
    assert (summary.mode, summary.embedded_records) == ("reembed_all", 2)
    assert is_vector(folder.data[0]["meaning"], "type: Film\ntitle: Rain")


def test_what_is_selected_is_made_anew(folder: Folder) -> None:
    given = [1, 0, 0, 0]
    folder.write(
        film("Rain", year=1952, meaning=given),
        film("Snow", tags=["cold", "wet"], meaning=given),
        film("Fog"),
        film("Sun", good=True, meaning=given),
        {"type": "Person", "data": {"name": "Rain", "face": given}},
    )
    chosen = ["Film:title=Rain", "tags=wet", "Film:good=true"]
    choice = RecordChoice(selectors=[Selector.of(text) for text in chosen])
    summary = embed_file(folder.files, choice, config=MOCK)
    assert (summary.mode, summary.selected_records) == ("reembed_selected", 3)
    rain, snow, fog, sun, person = folder.data
    assert given not in (rain["meaning"], snow["meaning"], sun["meaning"])
    assert "meaning" not in fog
    assert person["face"] == given


def test_a_selection_bounds_the_other_modes_too(folder: Folder) -> None:
    given = [1, 0, 0, 0]
    folder.write(film("Rain", year=1, meaning=given), film("Snow", year=2, meaning=given))
    choice = RecordChoice(selectors=[Selector.of("year=1")])
    summary = embed_file(folder.files, choice, "clean", MOCK)
    assert (summary.selected_records, summary.cleaned_records) == (1, 1)
    assert folder.data == [
        {"title": "Rain", "year": 1},
        {"title": "Snow", "year": 2, "meaning": given},
    ]


def test_vectors_are_taken_away(folder: Folder) -> None:
    folder.write(
        film("Rain", meaning=[1, 0, 0, 0], year=3), film("Snow", meaning=None), film("Fog")
    )
    summary = embed_file(folder.files, mode="clean", config=MOCK)
    assert folder.data == [{"title": "Rain", "year": 3}, {"title": "Snow"}, {"title": "Fog"}]
    assert (summary.cleaned_records, summary.embedded_records) == (2, 0)


def test_some_types(folder: Folder) -> None:
    folder.write(film("Rain"), {"type": "Person", "data": {"name": "Ann"}})
    summary = embed_file(folder.files, RecordChoice(types=["Person"]), config=MOCK)
    assert summary.selected_records == 1
    rain, ann = folder.data
    assert "meaning" not in rain
    assert "face" in ann


# -- texts and lines ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"title": " Rain \n"}, "title: Rain"),
        ({"title": "", "year": 0}, "year: 0"),
        ({"tags": [" a ", "", "b", 3]}, "tags: a, b, 3"),
        ({"tags": [], "title": None}, None),
        ({"good": False, "year": 1.5}, "year: 1.5\ngood: false"),
        ({"notes": {"a": [1]}, "unknown": "x"}, 'notes: {"a":[1]}'),
    ],
)
def test_the_text_of_a_record(folder: Folder, data: dict[str, Any], text: str | None) -> None:
    folder.write({"type": "Film", "data": data})
    embed_file(folder.files, config=MOCK)
    said = "type: Film" if text is None else f"type: Film\n{text}"
    assert is_vector(folder.data[0]["meaning"], said)


def test_what_is_not_changed_keeps_its_spelling(folder: Folder) -> None:
    folder.write(
        EDGE,
        '{"type":"Other" , "data":{"n":1.10}}',
        "",
        "   ",
        '{"data": {"big": 123456789012345678901234567890, "small": 1.10, "title": "R\\u0061in"}, '
        '"type": "Film"}',
    )
    summary = embed_file(folder.files, config=MOCK)
    assert summary.records == 3
    first, second, third = folder.lines
    assert (first, second) == (EDGE, '{"type":"Other" , "data":{"n":1.10}}')
    assert '"big":123456789012345678901234567890,"small":1.10,"title":"R\\u0061in"' in third
    assert third.endswith('"type":"Film"}')


def test_vectors_are_written_in_few_digits(folder: Folder) -> None:
    folder.write(film("Rain"))
    embed_file(folder.files, config=MOCK)
    numbers = folder.lines[0].partition("[")[2].partition("]")[0].split(",")
    assert all(len(number) <= 14 for number in numbers)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_ends_of_lines(folder: Folder, end: str) -> None:
    folder.write("\ufeff" + json.dumps(film("Rain")), film("Snow"), EDGE, end=end)
    embed_file(folder.files, config=MOCK)
    assert b"\r" not in folder.files.output.read_bytes()
    assert len(folder.lines) == 3


def test_many_records_keep_their_order(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.embed.files.BLOCK_LINES", 7)
    lines: list[str | dict[str, Any]] = []
    for number in range(50):
        lines += [film(f"f{number}"), EDGE]
    folder.write(*lines)
    assert embed_file(folder.files, config=MOCK).embedded_records == 50
    data = folder.data
    assert [one.get("title") for one in data[::2]] == [f"f{number}" for number in range(50)]
    assert is_vector(data[98]["meaning"], "type: Film\ntitle: f49")


def test_a_file_may_take_its_own_place(folder: Folder) -> None:
    folder.write(film("Rain"))
    files = EmbedFiles(folder.files.input, folder.files.input, folder.files.spec)
    assert embed_file(files, config=MOCK).embedded_records == 1
    assert embed_file(files, config=MOCK).embedded_records == 0
    assert "meaning" in folder.files.input.read_text()


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[1]",
        "null",
        '{"type": 3}',
        '{"type": "Film", "data": []}',
        '{"type": null}',
        '{"type": "Film", "data": {"a": ' + "[" * 5000,
    ],
)
def test_a_line_that_is_no_record(folder: Folder, line: str) -> None:
    folder.write(film("Rain"), "", line)
    with pytest.raises(BadRequest, match=r"in\.jsonl, line 3: "):
        embed_file(folder.files, config=MOCK)
    assert list(folder.files.output.parent.iterdir()) == []


def test_a_failure_leaves_the_old_output(folder: Folder, server: VectorServer) -> None:
    folder.files.output.parent.mkdir()
    folder.files.output.write_text("old")
    folder.write(film("Rain"), EDGE, film("a title of many words"))
    server.respond = lambda asked: (
        error(400, "too long") if any(len(text) > 30 for text in asked.texts) else None
    )
    with pytest.raises(EmbeddingError, match=r"in\.jsonl, line 3: ") as caught:
        embed_file(folder.files)
    assert (caught.value.kind, caught.value.details["line"]) == ("text_too_long", 3)
    assert folder.files.output.read_text() == "old"
    assert [path.name for path in folder.files.output.parent.iterdir()] == ["out.jsonl"]


def test_a_server_is_told_that_they_are_documents(
    folder: Folder, server: VectorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "gemini")
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    folder.write(film("Rain"))
    assert embed_file(folder.files).model == "small"
    assert server.asked[0].body["taskType"] == "RETRIEVAL_DOCUMENT"


def test_an_input_that_is_not_there(folder: Folder) -> None:
    with pytest.raises(BadRequest, match="No such file"):
        embed_file(folder.files, config=MOCK)


# -- specs, seeds and selectors ----------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", Selector("a", "b")),
        ("T:a=b", Selector("a", "b", "T")),
        (" T : a = b:c=d ", Selector("a", "b:c=d", "T")),
        ("a=", Selector("a", "")),
    ],
)
def test_selectors(text: str, expected: Selector) -> None:
    assert Selector.of(text) == expected


@pytest.mark.parametrize("text", ["", "a", "=b", "T:=b", ":a=b"])
def test_a_selector_that_is_none(text: str) -> None:
    with pytest.raises(BadRequest, match="Type:field=value"):
        Selector.of(text)


@pytest.mark.parametrize(
    "choice", [RecordChoice(["Flim"]), RecordChoice((), [Selector("a", "b", "Flim")])]
)
def test_a_type_that_the_spec_does_not_have(folder: Folder, choice: RecordChoice) -> None:
    folder.write(film("Rain"))
    with pytest.raises(BadRequest, match=r"no type 'Flim'.*Film"):
        embed_file(folder.files, choice, config=MOCK)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{", "not JSON"),
        ("[" * 5000, "not JSON"),
        ("{}", "dimension"),
        ('{"dimension": 0, "types": {}}', "dimension is 0"),
        ('{"dimension": "4", "types": {}}', "dimension"),
        ('{"dimension": 4, "types": {"T": {"fields": ["a"]}}}', "target"),
        ('{"dimension": 4, "types": {"T": {"target": "v", "fields": []}}}', "at least one field"),
    ],
)
def test_a_spec_that_is_none(tmp_path: Path, written: str, message: str) -> None:
    path = tmp_path / "spec.json"
    path.write_text(written)
    with pytest.raises(BadRequest, match=message):
        read_spec(path)
    with pytest.raises(BadRequest, match="cannot read"):
        read_spec(tmp_path / "nothing.json")


SEED = """
graph: { name: films }
sources: { raw_seed: data/raw.jsonl }
embeddings:
  dimension: 4
  types: { Film: { target: meaning, fields: [title] } }
"""


def test_a_seed(tmp_path: Path) -> None:
    path = tmp_path / "seed.yaml"
    path.write_text(SEED)
    found = read_seed(path)
    assert found.input == tmp_path / "data/raw.jsonl"
    assert found.output == tmp_path / "build/seed.embedded.jsonl"
    assert found.spec.types["Film"].fields == ["title"]
    path.write_text(SEED.replace("sources: { raw_seed:", "seed: { data:"))
    assert read_seed(path).input == tmp_path / "data/raw.jsonl"
    path.write_text(SEED + "artifacts: { embedded_seed: ../made.jsonl }")
    assert read_seed(path).output == tmp_path / "../made.jsonl"
    assert read_seed(path, Path("mine.jsonl")).output == Path("mine.jsonl")


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("a: [", "not YAML"),
        ("[" * 2000, "nests too deeply"),
        ("[]", "no `embeddings:`"),
        (SEED.replace("sources", "source"), "sources.raw_seed"),
        (SEED.replace("data/raw.jsonl", "3"), "path of a file"),
        (SEED.replace("dimension: 4", "dimension: many"), "embeddings: .*dimension"),
    ],
)
def test_a_seed_that_is_none(tmp_path: Path, written: str, message: str) -> None:
    path = tmp_path / "seed.yaml"
    path.write_text(written)
    with pytest.raises(BadRequest, match=message):
        read_seed(path)


# -- the command -------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/raw.jsonl").write_text(json.dumps(film("Rain")) + "\n" + EDGE)
    (tmp_path / "seed.yaml").write_text(SEED)
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    return tmp_path


def test_the_command_with_a_seed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embed", "--seed", "seed.yaml", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert list(said) == [
        "input",
        "output",
        "records",
        "selected_records",
        "embedded_records",
        "cleaned_records",
        "mode",
        "dimension",
        "model",
    ]
    assert (said["records"], said["embedded_records"], said["model"]) == (2, 1, "")
    assert (place / "build/seed.embedded.jsonl").is_file()
    assert main(["embed", "--seed", "seed.yaml", "--output", "mine.jsonl"]) == 0
    assert capsys.readouterr().out.startswith("embedded 1 of 2 records into mine.jsonl ")


def test_the_command_with_files(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--input", "data/raw.jsonl", "--output", "out.jsonl", "--spec", "spec.json"]
    for options, mode, counts in [
        ([], "fill_missing", (1, 1, 0)),
        (["--type", "Person"], "fill_missing", (0, 0, 0)),
        (["--select", "title=Rain", "--select", "Person:name=x"], "reembed_selected", (1, 1, 0)),
        (["--reembed-all", "--type", "Film", "--type", "Person"], "reembed_all", (1, 1, 0)),
        (["--clean"], "clean", (1, 0, 0)),
    ]:
        assert main(["embed", *files, *options, "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        found = (said["selected_records"], said["embedded_records"], said["cleaned_records"])
        assert (said["mode"], found) == (mode, counts)
    assert (place / "out.jsonl").read_text().splitlines()[1] == EDGE


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--type", "Film"],
        ["--input", "data/raw.jsonl"],
        ["--clean"],
        ["--seed", "seed.yaml", "--spec", "spec.json"],
        ["--seed", "seed.yaml", "--clean", "--reembed-all"],
        ["--seed", "seed.yaml", "--store", "graph.omni"],
        ["--seed", "seed.yaml", "--property", "meaning"],
        ["--store", "graph.omni"],
        ["--store", "graph.omni", "--type", "A", "--type", "B"],
    ],
)
@pytest.mark.usefixtures("place")
def test_options_that_do_not_go_together(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["embed", *options]) == 2
    assert "error: " in capsys.readouterr().err
