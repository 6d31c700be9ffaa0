from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from docmem.packet import PREAMBLE
from docmem.tokens import estimate

SAMPLES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "data/tokens.yaml").read_text("utf-8"))
"""With the true counts, which evals/tokens.py writes there."""

TEXTS = st.text(st.one_of(st.characters(), st.sampled_from("\n\r\u202e\u200d\u2028[]<>/… abc019")), max_size=300)


@pytest.mark.parametrize("sample", SAMPLES, ids=[sample["name"] for sample in SAMPLES])
def test_no_script_nor_code_is_undercounted_by_any_tokenizer(sample: dict[str, Any]) -> None:
    assert estimate(sample["text"]) >= 0.95 * max(sample["cl100k"], sample["o200k"], sample["anthropic"])


def test_english_is_hardly_overcounted() -> None:
    [english] = [sample for sample in SAMPLES if sample["name"] == "english"]
    assert estimate(english["text"]) <= 1.15 * english["cl100k"]


@given(TEXTS, TEXTS)
def test_tokens_are_additive_over_lines(first: str, second: str) -> None:
    assert estimate(f"{first}\n{second}") == estimate(f"{first}\n") + estimate(second)


@settings(max_examples=10, deadline=None)
@given(TEXTS)
def test_a_text_costs_the_same_whatever_was_counted_before(text: str) -> None:
    before = estimate(text)
    estimate(" ".join(f"{number}word" for number in range(9_000)))
    assert estimate(text) == before


def test_the_estimate_never_undercounts_the_shipped_texts_by_more_than_a_twentieth() -> None:
    """Against the tokenizer that litellm ships (cl100k, with its file inside the package)."""
    from docmem.config import set_default

    set_default("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    encoding = pytest.importorskip("litellm.utils").encoding
    root = Path(__file__).parents[1]
    shipped = [*root.glob("memory-repo-template/**/*.md"), root / "README.md", *root.glob("tests/data/*.txt")]
    for sample in [path.read_text("utf-8") for path in sorted(shipped)] + [PREAMBLE * 20]:
        assert estimate(sample) >= 0.95 * len(encoding.encode(sample, disallowed_special=()))
