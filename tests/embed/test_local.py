"""The local vectors: their dimensions, their meaning, and that a batch cannot be seen in them."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from omnigraph.embed import local
from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.embed.local import LocalEmbedder
from omnigraph.errors import EmbeddingError

TEXTS = [
    "a comedy about a singer in the rain",
    "a funny movie with songs and bad weather",
    "quarterly report on the price of copper",
    "naïve 日本 🧿",
    "\x00",
    "word " * 6000,
]


@pytest.mark.parametrize("dimension", [64, 128, 256])
def test_unit_vectors(dimension: int) -> None:
    made = LocalEmbedder().embed(TEXTS, dimension)
    assert made.shape == (len(TEXTS), dimension)
    assert made.dtype == np.float32
    assert np.allclose(np.linalg.norm(made, axis=1), 1, atol=1e-6)


def test_near_texts_are_near() -> None:
    film, movie, report = LocalEmbedder().embed(TEXTS[:3], 256)
    assert film @ movie > film @ report + 0.2


@pytest.mark.parametrize("dimension", [1, 100, 512])
def test_other_dimensions_need_another_provider(dimension: int) -> None:
    with pytest.raises(EmbeddingError, match="OMNIGRAPH_EMBED_PROVIDER") as caught:
        LocalEmbedder().embed(["a"], dimension)
    assert caught.value.details["dimension"] == dimension


def test_an_empty_text_has_no_vector() -> None:
    with pytest.raises(EmbeddingError, match="no vector for the text ''"):
        LocalEmbedder().embed(["a", "", "b"], 64)


def test_only_the_model_there_is() -> None:
    assert LocalEmbedder.of(EmbedderConfig(model=local.MODEL)).model == local.MODEL
    with pytest.raises(EmbeddingError, match="has no model 'large'"):
        LocalEmbedder.of(EmbedderConfig(model="large"))


def test_a_vector_does_not_depend_on_its_batch() -> None:
    texts = [f"number {n} " + "and more " * (n * 37 % 400) for n in range(300)] + TEXTS
    together = LocalEmbedder().embed(texts, 64)
    for at in [*range(0, len(texts), 17), len(texts) - 1]:
        assert np.array_equal(LocalEmbedder().embed([texts[at]], 64)[0], together[at])


def test_threads_load_the_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = []
    load = local._load.__wrapped__

    def counted() -> local._Words:
        loads.append(1)
        return load()

    monkeypatch.setattr(local, "_load", cache(counted))
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: LocalEmbedder().embed(["a"], 64), range(8)))
    assert len(loads) == 1
    assert all(np.array_equal(one, made[0]) for one in made)


@pytest.mark.slow
def test_the_vectors_are_those_of_wordllama(tmp_path: Path) -> None:
    program = (
        "import json, sys, numpy, wordllama\n"
        "from pathlib import Path\n"
        "here = Path(wordllama.__file__).parent\n"
        "model = wordllama.WordLlama.load(cache_dir=here, trunc_dim=128, disable_download=True)\n"
        "numpy.save(sys.argv[1], model.embed(json.loads(sys.argv[2]), norm=True))\n"
    )
    saved = tmp_path / "vectors.npy"
    texts = [text for text in TEXTS if "\0" not in text]
    arguments = [sys.executable, "-c", program, str(saved), json.dumps(texts)]
    subprocess.run(arguments, check=True, capture_output=True)
    assert np.allclose(LocalEmbedder().embed(texts, 128), np.load(saved), atol=1e-5)
