"""How well `search --files` finds what was said: LoCoMo's dated turns as documents, ranked without Postgres.

    python evals/files.py DIR [--b 0.25] [--language english]

Recall@5, recall@10 and MRR over all questions, and what it takes to prepare a text and to rank them for a question.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from docmem import filesearch
from docmem.model import Document
from docmem_evals import conversations, ranking

_DEPTH = 30
_TITLE = 60


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--b", type=float, default=filesearch.B, help="how much length counts")
    parser.add_argument("--language", default="english", help="simple: no stemmer")
    options = parser.parse_args()
    filesearch.B = options.b
    rows, texts, preparing, ranked = [], 0, 0.0, 0.0
    for conversation in conversations.load(options.folder):
        began = time.perf_counter()
        passages = filesearch.Passages(options.language)
        for turn, text in conversation.texts().items():
            page = Document(path=turn, folder="corpus", title=text[:_TITLE].strip(), text=text)
            passages.add_document(page, "revision", "blob")
        preparing += time.perf_counter() - began
        texts += len(passages)
        began = time.perf_counter()
        for query in conversation.queries:
            found = filesearch.ranked(query.text, [passages], limit=_DEPTH)
            rows.append(ranking.metrics([(hit.path,) for hit in found], query.relevant))
        ranked += time.perf_counter() - began
    mean = ranking.mean(rows)
    print(
        f"{len(rows)} questions: " + ", ".join(f"{name} {mean[name]:.3f}" for name in ("recall@5", "recall@10", "mrr"))
    )
    print(f"{preparing / texts * 1e6:.0f} µs a text, {ranked / len(rows) * 1e3:.2f} ms a question")


if __name__ == "__main__":
    main()
