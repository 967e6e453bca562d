"""What to type: an example or two for every command, which its help ends with.

Owns the examples and nothing else. They are about a graph `film.omni`, named in full: whoever has
a project leaves the graph out. Imported when a help is printed.
"""

from __future__ import annotations

from collections.abc import Mapping

_PERSON = "'match { $p: Person } return { $p.name }'"

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "": (
        "omnigraph init --template film films",
        f"omnigraph query film.omni {_PERSON}",
    ),
    # -- making a graph, and what it is like -----------------------------------------------
    "init": (
        "omnigraph init film.omni --schema film.pg",
        "omnigraph init --template film films",
    ),
    "infer": (
        "omnigraph infer Person.csv Film.csv ActedIn.csv -o film.pg",
        "omnigraph infer flights.parquet",
    ),
    "schema show": (
        "omnigraph schema show film.omni",
        "omnigraph schema show film.omni --branch draft > draft.pg",
    ),
    "schema plan": ("omnigraph schema plan film.omni --schema next.pg --check",),
    "schema apply": (
        "omnigraph schema apply film.omni --schema next.pg --branch draft -m 'Countries'",
    ),
    "schema diff": ("omnigraph schema diff main draft --store film.omni",),
    "schema log": ("omnigraph schema log film.omni",),
    "lint": (
        "omnigraph lint --schema film.pg --query film.gq",
        "omnigraph lint film.omni --query film.gq --json",
    ),
    "fmt": ("omnigraph fmt film.pg film.gq", "omnigraph fmt --check film.pg film.gq"),
    "lsp": ("omnigraph lsp",),
    # -- rows in, rows out -----------------------------------------------------------------
    "load": (
        "omnigraph load film.omni --data Person.csv --data ActedIn.csv --mode merge",
        "omnigraph load film.omni --data Film=films.csv --null NA --mode append -m 'More films'",
    ),
    "pipeline run": ("omnigraph pipeline run films.yaml --dry-run",),
    "pipeline validate": ("omnigraph pipeline validate films.yaml",),
    "embed": (
        "omnigraph embed --store film.omni --type Film --property plot_vector",
        "omnigraph embed --seed seed.yaml --output vectors.jsonl",
    ),
    "mutate": (
        "omnigraph mutate film.omni 'create Person { name: \"Ann\" }' -m 'Ann'",
        'omnigraph mutate film.omni --query film.gq rename --params \'{"name": "Ann"}\'',
    ),
    "query": (
        f"omnigraph query film.omni {_PERSON}",
        'omnigraph query film.omni --query film.gq cast --params \'{"title": "Speed"}\'',
    ),
    "explain": (
        f"omnigraph explain film.omni {_PERSON}",
        f"omnigraph explain film.omni {_PERSON} --analyze",
    ),
    "shell": ("omnigraph shell film.omni", "omnigraph shell film.omni --branch draft"),
    "blob get": ("omnigraph blob get node Film Speed poster --store film.omni --out speed.jpg",),
    "blob stat": ("omnigraph blob stat node Film Speed poster --store film.omni",),
    "export": (
        "omnigraph export film.omni > film.jsonl",
        "omnigraph export film.omni --type Film --format parquet --out films/",
    ),
    "generate": ("omnigraph generate --out people --people 1000 --edges 5000 --format csv",),
    "submit": (
        "omnigraph submit --master yarn -- load s3://lake/f.omni --data s3://raw/ --mode append",
    ),
    # -- history ---------------------------------------------------------------------------
    "branch list": ("omnigraph branch list --store film.omni",),
    "branch create": (
        "omnigraph branch create draft --store film.omni",
        "omnigraph branch create before --from main~2 --store film.omni",
    ),
    "branch merge": (
        "omnigraph branch merge draft --store film.omni -m 'Countries'",
        "omnigraph branch merge draft --store film.omni --resolve source --delete-branch",
    ),
    "branch delete": ("omnigraph branch delete draft --store film.omni",),
    "branch rename": ("omnigraph branch rename draft review --store film.omni",),
    "branch reset": ("omnigraph branch reset draft --to main~2 --store film.omni",),
    "tag list": ("omnigraph tag list --store film.omni",),
    "tag create": ("omnigraph tag create v1 main --store film.omni",),
    "tag delete": ("omnigraph tag delete v1 --store film.omni",),
    "diff": (
        "omnigraph diff main draft --store film.omni",
        "omnigraph diff main~3 main --stat --store film.omni",
    ),
    "log": (
        "omnigraph log film.omni --graph",
        "omnigraph log film.omni --type Film --since 2026-01-31 --actor ann",
    ),
    "show": ("omnigraph show main~1 --store film.omni",),
    "history": ("omnigraph history Film Speed --store film.omni",),
    "blame": ("omnigraph blame Film Speed --store film.omni",),
    "revert": ("omnigraph revert main~1 --store film.omni -m 'Not yet'",),
    "cherry-pick": ("omnigraph cherry-pick draft --onto main --store film.omni",),
    "commit list": ("omnigraph commit list film.omni --filter actor=ann",),
    "commit show": ("omnigraph commit show main~1 --store film.omni",),
    "commit changes": ("omnigraph commit changes main --type Film --store film.omni",),
    "changes poll": ("omnigraph changes poll --start beginning --store film.omni --json",),
    "changes baseline": ("omnigraph changes baseline --out film.jsonl --store film.omni",),
    "snapshot": ("omnigraph snapshot film.omni --branch draft",),
    # -- keeping it in order ---------------------------------------------------------------
    "status": ("omnigraph status film.omni",),
    "maintain": (
        "omnigraph maintain film.omni --once",
        "omnigraph maintain film.omni --watch --every 10m",
    ),
    "index ensure": ("omnigraph index ensure film.omni",),
    "index status": ("omnigraph index status film.omni",),
    "optimize": ("omnigraph optimize film.omni --dry-run",),
    "cleanup": (
        "omnigraph cleanup film.omni --keep 100 --older-than 30d",
        "omnigraph cleanup film.omni --keep 100 --older-than 30d --confirm",
    ),
    "verify": ("omnigraph verify film.omni --deep",),
    "repair": ("omnigraph repair film.omni", "omnigraph repair film.omni --confirm"),
    "recovery list": ("omnigraph recovery list film.omni",),
    "policy validate": ("omnigraph policy validate --policy policy.yaml",),
    "policy test": ("omnigraph policy test --policy policy.yaml --tests cases.yaml",),
    "policy explain": (
        "omnigraph policy explain --policy policy.yaml --actor ann --action read --branch main",
    ),
    # -- servers, clusters and projects ----------------------------------------------------
    "serve": (
        "omnigraph serve film.omni --unauthenticated",
        "omnigraph serve --cluster s3://lake/graphs --bind 0.0.0.0:8080",
    ),
    "login": ("omnigraph login prod",),
    "logout": ("omnigraph logout prod",),
    "graphs list": ("omnigraph graphs list --server prod",),
    "profile list": ("omnigraph profile list",),
    "profile show": ("omnigraph profile show staging",),
    "cluster validate": ("omnigraph cluster validate --config graphs",),
    "cluster plan": ("omnigraph cluster plan --config graphs",),
    "cluster apply": ("omnigraph cluster apply --config graphs --as ann",),
    "cluster approve": ("omnigraph cluster approve graph.film --config graphs --as ann",),
    "cluster status": ("omnigraph cluster status --config graphs",),
    "cluster refresh": ("omnigraph cluster refresh --config graphs",),
    "cluster import": ("omnigraph cluster import --config graphs",),
    "cluster force-unlock": (
        "omnigraph cluster force-unlock 01KA5QWZ7N4T3M8YB0C2D6E9FG --config graphs",
    ),
    "queries list": ("omnigraph queries list --cluster graphs --graph film",),
    "queries validate": ("omnigraph queries validate",),
    "queries explain": ("omnigraph queries explain cast --graph film",),
    "alias": ("omnigraph alias cast Speed", "omnigraph alias cast Speed --format csv"),
    "config show": ("omnigraph config show",),
    "config schema": ("omnigraph config schema > omnigraph.schema.json",),
    "config validate": ("omnigraph config validate",),
    "config migrate": ("omnigraph config migrate", "omnigraph config migrate --write"),
    "completion": (
        'eval "$(omnigraph completion bash)"',
        "omnigraph completion fish > ~/.config/fish/completions/omnigraph.fish",
    ),
    "version": ("omnigraph version", "omnigraph version --json"),
}
MOST = 2


def examples_of(words: str) -> tuple[str, ...]:
    """What to type for a command; for a group the first of each of its first commands."""
    if found := EXAMPLES.get(words):
        return found
    below = [lines[0] for name, lines in EXAMPLES.items() if name.startswith(f"{words} ")]
    return tuple(below[:MOST])
