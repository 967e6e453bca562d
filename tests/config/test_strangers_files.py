"""A project file from a stranger can do no harm: one test for each thing it must not do."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.config.project_reader import parse_project, read_project
from omnigraph.config.variables import load_env_file, value_of
from omnigraph.errors import BadRequest
from omnigraph.server.stored_queries import StoredQueries

SECRET = "sk-do-not-show-this"  # noqa: S105 - what must not be shown


def refused(text: str, path: Path = Path("/p/omnigraph.yaml")) -> str:
    with pytest.raises(BadRequest) as raised:
        parse_project(text, path)
    return str(raised.value)


@pytest.mark.parametrize(
    "name",
    ["AWS_SECRET_ACCESS_KEY", "HOME", "omnigraph_token", "MY_TOKEN", "OMNIGRAPH_KEY", "PATH"],
)
def test_a_token_is_read_from_a_variable_of_its_shape_alone(name: str) -> None:
    text = f"graphs: {{evil: {{uri: 'https://evil.example', bearer_token_env: {name}}}}}"
    assert "OMNIGRAPH_…TOKEN…" in refused(text)


def test_the_tokens_of_a_server_are_not_for_clients() -> None:
    text = "graphs: {e: {uri: 'https://e', bearer_token_env: OMNIGRAPH_SERVER_BEARER_TOKENS_JSON}}"
    assert "not for its clients" in refused(text)


@pytest.mark.parametrize("key", [SECRET, f"${{{SECRET}", "${HOME}/x", "$OPENAI_API_KEY", "${a b}"])
def test_a_secret_in_the_file_is_refused_and_not_shown(key: str) -> None:
    said = refused(f"providers: {{embedding: {{a: {{api_key: '{key}'}}}}}}")
    assert "a secret is not written here" in said
    assert SECRET not in said


@pytest.mark.parametrize("name", ["token", "bearer_token", "password", "api_key"])
def test_a_secret_under_a_made_up_key_is_refused_too(name: str) -> None:
    said = refused(f"graphs: {{a: {{uri: x, {name}: {SECRET}}}}}")
    assert "secrets are not written here" in said
    assert SECRET not in said


def test_a_secret_in_an_address_is_refused_and_not_shown() -> None:
    said = refused(f"graphs: {{a: {{uri: 'https://me:{SECRET}@evil.example'}}}}")
    assert "secrets are not written here" in said
    assert SECRET not in said


@pytest.mark.parametrize(
    ("variable", "base"),
    [
        ("OPENAI_API_KEY", "https://evil.example/v1"),
        ("GEMINI_API_KEY", "https://api.openai.com.evil.example"),
        ("STRIPE_API_KEY", "https://evil.example"),
        ("OPENAI_API_KEY", "https://api.openai.com@evil.example"),
        ("AWS_SECRET_ACCESS_KEY", "http://localhost:1"),
    ],
)
def test_a_key_goes_to_its_own_provider(variable: str, base: str) -> None:
    said = refused(
        f"providers: {{embedding: {{a: {{base_url: '{base}', api_key: '${{{variable}}}'}}}}}}"
    )
    assert "OMNIGRAPH_…KEY…" in said


@pytest.mark.parametrize(
    ("variable", "base"),
    [
        ("OPENAI_API_KEY", "https://api.openai.com/v1"),
        ("OPENAI_API_KEY", "http://localhost:8000"),
        ("OMNIGRAPH_VECTORS_KEY", "https://vectors.example"),
    ],
)
def test_where_a_key_may_go(variable: str, base: str) -> None:
    text = f"providers: {{embedding: {{a: {{base_url: '{base}', api_key: '${{{variable}}}'}}}}}}"
    project = parse_project(text, Path("/p/omnigraph.yaml"))
    assert project.embedding["a"].key_variable == variable


def test_a_key_for_the_usual_address_is_that_of_a_provider() -> None:
    text = "providers: {embedding: {a: {kind: openai, api_key: '${STRIPE_API_KEY}'}}}"
    assert "not the key of this provider" in refused(text)


# -- the file of variables ---------------------------------------------------------------


@pytest.mark.parametrize("given", ["../secrets.env", "/etc/passwd", ".", "..", "a/../../x"])
def test_an_env_file_lies_below_the_project(tmp_path: Path, given: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    said = refused(f"auth: {{env_file: '{given}'}}", project / "omnigraph.yaml")
    assert "has to be a file below" in said


def test_also_when_it_is_a_link_or_below_one(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    outside.mkdir()
    (outside / "x.env").write_text("OMNIGRAPH_TOKEN_A=1\n")
    (project / "link.env").symlink_to(outside / "x.env")
    (project / "directory").symlink_to(outside)
    for given in ("link.env", "directory/x.env"):
        said = refused(f"auth: {{env_file: {given}}}", project / "omnigraph.yaml")
        assert "links included" in said


def test_a_project_behind_a_link_has_its_own_file(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "x.env").write_text("OMNIGRAPH_A_TOKEN=1\n")
    (real / "omnigraph.yaml").write_text("auth: {env_file: x.env}\n")
    (tmp_path / "link").symlink_to(real)
    assert read_project(tmp_path / "link" / "omnigraph.yaml").env_file == real / "x.env"


def loaded(tmp_path: Path, text: str, *named: str, **set_before: str) -> dict[str, str]:
    path = tmp_path / "x.env"
    path.write_text(text)
    environment = dict(set_before)
    load_env_file(path, frozenset(named), environment)
    return environment


def test_nothing_in_it_is_executed_or_expanded(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    text = f"""\
# a comment
OMNIGRAPH_A=$(touch {mark})
export OMNIGRAPH_B=`touch {mark}`
OMNIGRAPH_C="${{HOME}} x"
OMNIGRAPH_D=plain # and a remark
"""
    assert loaded(tmp_path, text) == {
        "OMNIGRAPH_A": f"$(touch {mark})",
        "OMNIGRAPH_B": f"`touch {mark}`",
        "OMNIGRAPH_C": "${HOME} x",
        "OMNIGRAPH_D": "plain",
    }
    assert not mark.exists()


def test_what_is_set_stays(tmp_path: Path) -> None:
    found = loaded(tmp_path, "OMNIGRAPH_A=new\n", OMNIGRAPH_A="mine")
    assert found == {"OMNIGRAPH_A": "mine"}


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "LD_PRELOAD",
        "PYTHONPATH",
        "HTTPS_PROXY",
        "OPENAI_API_KEY",
        "AWS_PROFILE",
        "AWS_CONFIG_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "OMNIGRAPH_HOME",
        "OMNIGRAPH_CONFIG",
        "OMNIGRAPH_EMBED_BASE_URL",
        "OMNIGRAPH_UNAUTHENTICATED",
        # What a person has said with --profile is not said otherwise by a file.
        "OMNIGRAPH_GRAPH",
        "OMNIGRAPH_BRANCH",
        # A token that somebody else knows would open every graph that is served from here.
        "OMNIGRAPH_SERVER_BEARER_TOKEN",
        "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON",
        "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET",
    ],
)
def test_variables_that_lead_elsewhere_are_not_set(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.env"
    path.write_text(f"{name}={SECRET}\n")
    environment: dict[str, str] = {}
    (warning,) = load_env_file(path, frozenset(), environment)
    assert environment == {}
    assert name in warning
    assert SECRET not in warning


def test_a_key_that_a_provider_names_may_be_set(tmp_path: Path) -> None:
    assert loaded(tmp_path, "OPENAI_API_KEY=k\n", "OPENAI_API_KEY") == {"OPENAI_API_KEY": "k"}


def test_an_endpoint_comes_with_keys_of_its_own(tmp_path: Path) -> None:
    text = "AWS_ENDPOINT_URL_S3=https://evil.example\n"
    keys = "AWS_ACCESS_KEY_ID=a\nAWS_SECRET_ACCESS_KEY=b\n"
    assert loaded(tmp_path, text) == {}
    assert "AWS_ENDPOINT_URL_S3" not in loaded(tmp_path, text + keys, AWS_ACCESS_KEY_ID="mine")
    assert "AWS_ENDPOINT_URL_S3" in loaded(tmp_path, text + keys)


def test_a_line_that_is_none_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(BadRequest) as raised:
        loaded(tmp_path, f"{SECRET}\n")
    assert "line 1" in str(raised.value)
    assert SECRET not in str(raised.value)


def test_a_file_that_is_missing_sets_nothing(tmp_path: Path) -> None:
    assert load_env_file(tmp_path / "none.env", frozenset(), {}) == []
    assert value_of("OMNIGRAPH_A", {"OMNIGRAPH_A": " "}) is None


# -- files that are made to harm ---------------------------------------------------------


def test_a_file_that_unfolds_into_more_and_more() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    text = "\n".join(lines) + "\naliases: {a: {query: q, params: {p: *a8}}}\n"
    assert "more than parameters can be" in refused(text)


def test_a_file_that_contains_itself() -> None:
    assert "more than parameters" in refused("aliases: {a: {query: q, params: &p {p: *p}}}\n")


def test_a_file_that_nests_without_end() -> None:
    assert "nests too deeply" in refused("[" * 100_000)


def test_a_file_that_would_make_objects() -> None:
    text = "project: {name: !!python/object/apply:os.system ['true']}\n"
    assert "must be a text" in refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "graphs: {a: {uri: a, schema: dev}}",
        "graphs: {a: {uri: a, queries: dev}}",
        "graphs: {a: {uri: a, queries: [dev]}}",
        "graphs: {a: {uri: a, queries: {q: {file: dev}}}}",
        "graphs: {a: {uri: a, policy: {file: dev}}}",
        "server: {policy: {file: dev}}",
    ],
)
def test_a_file_that_never_ends_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "dev").symlink_to("/dev/zero")
    said = refused(f"version: 1\n{text}", tmp_path / "omnigraph.yaml")
    assert "this is neither a file nor a directory" in said


def test_nor_is_one_in_a_directory_of_queries(tmp_path: Path) -> None:
    (tmp_path / "q.gq").symlink_to("/dev/zero")
    with pytest.raises(BadRequest, match=r"q\.gq: it is not a file"):
        StoredQueries.read([str(tmp_path)])
