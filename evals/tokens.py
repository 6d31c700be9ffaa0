"""What docmem's estimate of tokens is made from, and how far it is from three public tokenizers.

    python evals/tokens.py [--write] [--json]

Prints, for each sample of tests/data/tokens.yaml and for the Markdown and cases of this repo, the estimate as a share
of what cl100k, o200k and the tokenizer that Anthropic published count. `--write` makes docmem/pieces.txt anew, and
writes the true counts into the samples. It needs tiktoken and tokenizers with their files as litellm brings them;
docmem itself needs neither.
"""

from __future__ import annotations

import argparse
import json
import os
import textwrap
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from docmem.tokens import estimate

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "tests/data/tokens.yaml"
PIECES = ROOT / "docmem/pieces.txt"
STARTS, INNER = 16_000, 8_000
HEAD = f"""\
Pieces of words that are one token in cl100k, in o200k and in the tokenizer that Anthropic published: first the
{STARTS:,} most frequent ones that begin a word, then the {INNER:,} inside of words. See tokens.py and evals/tokens.py.
"""


class Tokenizers:
    """The three, out of files that litellm brings."""

    def __init__(self) -> None:
        spec = find_spec("litellm")
        if spec is None or spec.origin is None:
            raise SystemExit("litellm isn't installed: its files are needed")
        folder = Path(spec.origin).parent / "litellm_core_utils/tokenizers"
        os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
        import tiktoken
        from tokenizers import Tokenizer

        self.open = [tiktoken.get_encoding(name) for name in ("cl100k_base", "o200k_base")]
        self.anthropic = Tokenizer.from_file(str(folder / "anthropic_tokenizer.json"))

    def counts(self, text: str) -> dict[str, int]:
        """Tokens by tokenizer."""
        cl100k, o200k = (len(each.encode(text, disallowed_special=())) for each in self.open)
        anthropic = len(self.anthropic.encode(text, add_special_tokens=False).ids)
        return {"cl100k": cl100k, "o200k": o200k, "anthropic": anthropic}

    def common(self) -> Iterator[str]:
        """What all three have as one token, the most frequent first."""
        cl100k, o200k = self.open
        others = {text for text in map(_bytes(), self.anthropic.get_vocab()) if text is not None}
        known = set(o200k.token_byte_values())
        for token in map(cl100k.decode_single_token_bytes, range(100_256)):
            if token in known and token in others and token.isascii():
                yield token.decode()


def _bytes() -> Callable[[str], bytes | None]:
    """How a byte-level vocabulary writes bytes as letters, the other way round."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    odd = [byte for byte in range(256) if byte not in plain]
    written = {chr(byte): byte for byte in plain} | {chr(256 + n): byte for n, byte in enumerate(odd)}
    return lambda token: bytes(written[char] for char in token) if all(char in written for char in token) else None


def pieces(common: Iterable[str]) -> str:
    """The text of pieces.txt."""
    listed = list(common)
    starts = [token[1:] for token in listed if token[0] == " " and token[1:].isalpha()][:STARTS]
    inner = [token for token in listed if token.isalpha()][:INNER]
    return "\n".join(
        [HEAD, *(textwrap.fill(" ".join(part), 120, break_long_words=False) + "\n" for part in (starts, inner))]
    )


def texts() -> Iterator[tuple[str, str]]:
    """The samples, and the texts that ship."""
    for sample in yaml.safe_load(SAMPLES.read_text(encoding="utf-8")):
        yield sample["name"], sample["text"]
    for pattern in ("*.md", "*/*.md", "tests/data/*.txt", "tests/data/*.yaml", "evals/docmem_evals/cases/*/*.yaml"):
        for path in sorted(ROOT.glob(pattern)):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def main() -> int:
    """Print the shares; 1 where one is under .95."""
    parser = argparse.ArgumentParser(description="The estimate of tokens beside three tokenizers.")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    real = Tokenizers()
    if given.write:
        PIECES.write_text(pieces(real.common()), encoding="ascii")
        samples: list[dict[str, Any]] = yaml.safe_load(SAMPLES.read_text(encoding="utf-8"))
        made = [{"name": each["name"], "text": each["text"], **real.counts(each["text"])} for each in samples]
        SAMPLES.write_text(yaml.safe_dump(made, allow_unicode=True, sort_keys=False, width=110), encoding="utf-8")
    rows: list[dict[str, Any]] = []
    for name, text in texts():
        counted = real.counts(text)
        shares = {by: round(estimate(text) / count, 2) for by, count in counted.items()}
        rows.append({"name": name, "tokens": counted, "shares": shares, "least": min(shares.values())})
    if given.json:
        print(json.dumps(rows))
    else:
        for row in sorted(rows, key=lambda row: row["least"]):
            print(
                f"{row['least']:.2f}  {row['name']:42} "
                + "  ".join(f"{by} {at:.2f}" for by, at in row["shares"].items())
            )
    return int(any(row["least"] < 0.95 for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
