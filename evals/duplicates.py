"""Whether words, and a vector beside them, tell statements that say the same from those that don't.

    python evals/duplicates.py [--locomo DIR]

The pairs are in docmem_evals/data/duplicates.yaml. It takes the embedder `local`. With LoCoMo, the observations of each
conversation are compared with each other as well, and what would be merged is printed, for a person to judge.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from statistics import median
from typing import Any

from docmem.config import Settings
from docmem.embedding import Embedder, embedder, same_above
from docmem.strictyaml import load_mapping
from docmem.wording import likeness, may_be_one
from docmem_evals import conversations

Pair = tuple[str, str]


def shipped(kind: str) -> list[Pair]:
    """The pairs of `differ` or `same`."""
    data: Mapping[str, Any] = load_mapping(
        resources.files("docmem_evals").joinpath("data/duplicates.yaml").read_text("utf-8")
    )
    return [(one, other) for one, other in data[kind]]


def cosines(pairs: Sequence[Pair], model: Embedder) -> list[float]:
    """The cosine of each pair; vectors have length 1."""
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    vectors = dict(zip(texts, model.passages(texts), strict=True))
    return [sum(a * b for a, b in zip(vectors[one], vectors[other], strict=True)) for one, other in pairs]


def judged(pairs: Sequence[Pair], model: Embedder) -> list[tuple[float, bool, bool]]:
    """(cosine, made one by words alone, made one at all) of each pair."""
    bound = same_above(model.model) or 1.0
    return [
        (cosine, likeness(*pair) != "other", likeness(*pair) != "other" or (may_be_one(*pair) and cosine >= bound))
        for pair, cosine in zip(pairs, cosines(pairs, model), strict=True)
    ]


def main() -> None:
    """Print the table, and with LoCoMo what would be merged there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--locomo", type=Path)
    arguments = parser.parse_args()
    model = embedder(Settings(root=Path()), name="local")
    assert model is not None
    print(f"{'pairs':<8}{'n':>4}{'highest':>9}{'median':>8}{'lowest':>8}{'by words':>10}{'with vector':>13}")
    for kind in ("differ", "same"):
        found = judged(shipped(kind), model)
        values = [cosine for cosine, _, _ in found]
        by_words, at_all = sum(words for _, words, _ in found), sum(one for _, _, one in found)
        print(
            f"{kind:<8}{len(found):>4}{max(values):>9.3f}{median(values):>8.3f}{min(values):>8.3f}"
            f"{by_words:>10}{at_all:>13}"
        )
    if arguments.locomo:
        _look_at(arguments.locomo, model)


def _look_at(folder: Path, model: Embedder) -> None:
    compared, candidates = 0, []
    for conversation in conversations.load(folder):
        texts = [each.text for session in conversation.sessions for each in session.observations]
        for pair in itertools.combinations(texts, 2):
            compared += 1
            if likeness(*pair) != "other" or may_be_one(*pair):
                candidates.append(pair)
    merged = [pair for pair, (_, _, one) in zip(candidates, judged(candidates, model), strict=True) if one]
    print(f"LoCoMo: {compared} pairs compared, {len(candidates)} close by their words, {len(merged)} made one")
    for one, other in merged:
        print(f"  {one} | {other}")


if __name__ == "__main__":
    main()
