"""The chapter about search: words, meaning and structure in one question.

Owns the question; works on the library that the chapters before have made.
"""

from __future__ import annotations

import json
import subprocess

from demo.telling import HERE, OMNIGRAPH, check, run, say

VOYAGES = """\
query voyages($about: String, $words: String) {
    match {
        $b: Book
        $a wrote $b
        not { $r borrowed $b $r.card = "R2" }
    }
    return {
        $b.title
        $a.name as author
        rrf(nearest($b.gist, $about), bm25($b.summary, $words)) as score
    }
    order { rrf(nearest($b.gist, $about), bm25($b.summary, $words)) }
    limit 3
}"""
PARAMS = {"about": "a voyage by ship", "words": "sea ferry harbour"}


def show_search(uri: str) -> None:
    """Load texts, whose vectors are made on the way, and ask a question of all kinds."""
    say(
        "Texts become vectors while they are loaded",
        "catalogue.jsonl gives every book a summary; its gist is embedded here, offline.",
    )
    batch = ("--data", str(HERE / "catalogue.jsonl"), "--mode", "merge", "--engine", "inline")
    run("load", uri, *batch, "--quiet")
    run("index", "ensure", uri, "--quiet")
    say(
        "One question of meaning, words and structure",
        "What is about a voyage, in meaning or by its words, who wrote it, and what has Tom not\n"
        "borrowed yet? Both rankings are fused; an index may change the speed, never the answer.",
    )
    question = ("--store", uri, "-e", VOYAGES, "--params", json.dumps(PARAMS))
    run("query", *question)
    run("explain", *question, "--analyze")
    found = subprocess.run(
        [OMNIGRAPH, "query", *question, "--format", "json"],
        cwd=HERE,
        check=True,
        capture_output=True,
        text=True,
    )
    titles = [row["b.title"] for row in json.loads(found.stdout)["rows"]]
    check(
        len(titles) == 3 and "Bread at Dawn" not in titles,
        f"\n    of six texts it chose {', '.join(titles)}",
    )
