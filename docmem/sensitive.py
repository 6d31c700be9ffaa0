"""What must never be stored: credentials and card numbers. Found by shape; the list says what each shape is.

Precision matters on both sides: a booking code is no token, and a missed key in git history is a rewrite. Tokens of
known providers are found by detect-secrets' detectors and by our own list, which knows the newer ones; passwords in
sentences (passwords.py) and card numbers (cards.py) by ours alone, since a code scanner looks for assignments.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from docmem import cards, passwords

_DETECTORS = (
    "artifactory.ArtifactoryDetector", "aws.AWSKeyDetector", "azure_storage_key.AzureStorageKeyDetector",
    "basic_auth.BasicAuthDetector", "cloudant.CloudantDetector", "discord.DiscordBotTokenDetector",
    "github_token.GitHubTokenDetector", "gitlab_token.GitLabTokenDetector", "ibm_cloud_iam.IbmCloudIamDetector",
    "ibm_cos_hmac.IbmCosHmacDetector", "jwt.JwtTokenDetector", "mailchimp.MailchimpDetector", "npm.NpmDetector",
    "openai.OpenAIDetector", "private_key.PrivateKeyDetector", "pypi_token.PypiTokenDetector",
    "sendgrid.SendGridDetector", "slack.SlackDetector", "softlayer.SoftlayerDetector",
    "square_oauth.SquareOAuthDetector", "stripe.StripeDetector", "telegram_token.TelegramBotTokenDetector",
    "twilio.TwilioKeyDetector",
)  # fmt: skip
"""detect-secrets' detectors by shape. Not its keyword and entropy ones: they judge source code, not sentences."""


def _of(*pairs: tuple[str, str]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(pattern)) for name, pattern in pairs)


_PHRASE_NAMES = (
    r"\b(?:seed|mnemonic)\b|\b(?:recovery|backup|wallet|restore)\s+(?:seed|phrase|words?)\b|"
    r"\b(?:12|24|twelve|twenty-?\s?four)(?:[\s-]word)?\s+(?:words|phrase)\b|\bwiederherstellungs(?:phrase|wörter)|"
    r"\bfrase\s+(?:de\s+recupera\w+|semilla|semente|di\s+recupero)\b|\bphrase\s+de\s+récupération\b|助记词|助記詞"
)
_PHRASE = (
    r"(?<![a-z])(?:(?:\d{1,2}[.)]\s{0,2})?(?!(?:the|and|for|was|has|had|his|her|its|are|not|but|which|from|written|stored|kept)\b)"
    r"[a-z]{3,8}\b(?:[\s,;]{1,3}|(?=[.\"'”]|\Z))){12,24}"
)
"""Twelve words or more as wallets list them: three to eight letters each, and none that a sentence can't do without."""
_TOKENS = _of(
    (
        "private key",
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [^\n]*|\Z)|AGE-SECRET-KEY-1\w{20,}",
    ),
    ("AWS key", r"\b(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    ("GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,})"),
    ("GitLab token", r"\bgl(?:pat|rt|ptt|dt|ft|cbt|soat)-[A-Za-z0-9_-]{20,}"),
    ("Slack token", r"\bx(?:ox[abceoprs]|app)-[A-Za-z0-9-]{10,}"),
    (
        "webhook",
        r"https://(?:hooks\.slack\.com/(?:services|workflows)|(?:\w+\.)?discord(?:app)?\.com/api/webhooks)/\S+",
    ),
    ("Google key", r"\bAIza[A-Za-z0-9_-]{30,}|\bGOCSPX-[A-Za-z0-9_-]{20,}|\b1//0[A-Za-z0-9_-]{30,}|\bya29\.[\w-]{20,}"),
    ("Stripe key", r"\b[srp]k_(?:live|test)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9+/=]{20,}"),
    ("API key", r"\bsk-(?=[A-Za-z_-]{0,60}\d)[A-Za-z0-9_-]{16,}"),
    ("npm token", r"\bnpm_[A-Za-z0-9]{30,}"),
    ("Hugging Face token", r"\bhf_[A-Za-z0-9]{30,}"),
    ("SendGrid key", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("Twilio key", r"\b(?:SK|AC)[0-9a-f]{32}\b"),
    ("Telegram token", r"\b\d{8,10}:AA[A-Za-z0-9_-]{30,}"),
    ("Mailgun key", r"\bkey-[0-9a-z]{32}\b"),
    ("Square token", r"\bsq0(?:atp|csp|idp)-[A-Za-z0-9_-]{20,}|\bEAAA[\w-]{60}\b"),
    ("Shopify token", r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b"),
    ("DigitalOcean token", r"\bdo[opr]_v1_[0-9a-f]{60,}"),
    ("Databricks token", r"\bdapi[0-9a-f]{32}\b"),
    ("Vault token", r"\bhv[sbr]\.[A-Za-z0-9_-]{20,}"),
    ("Grafana token", r"\bgl(?:sa|c)_[A-Za-z0-9+/=_]{30,}"),
    ("Linear key", r"\blin_(?:api|oauth)_[A-Za-z0-9]{30,}"),
    ("Notion token", r"\b(?:ntn_|secret_)[A-Za-z0-9]{40,}"),
    ("Doppler token", r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{30,}"),
    ("Terraform token", r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}"),
    ("JWT", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    ("authorization", r"(?i)\bbearer\s+[A-Za-z0-9._~+/-]{20,}=*|\bauthorization\s*:\s*basic\s+[A-Za-z0-9+/]{8,}={0,2}"),
    ("connection string", r"\b[a-z][a-z0-9+.-]{1,30}://[^\s/:@]{0,100}:(?!\d{1,5}(?:/|\s))[^\s]{1,200}@[^\s]{1,200}"),
    (
        "recovery phrase",
        r"(?i)\b(?:seed|recovery|mnemonic|backup)\s+(?:phrase|words?)\b[^\n:]{0,20}:\s*(?:[a-z]+\s+){7,}[a-z]+",
    ),
    (
        "recovery phrase",
        rf"(?i)(?:{_PHRASE_NAMES})[^\n:=]{{0,40}}?(?:[:=]|\b(?:is|are|was|ist|lautet|es|est|é|è|adalah|ialah)\b|是|は)"
        rf"[\s:\"'“„]{{0,4}}{_PHRASE}|{_PHRASE}[\"'”\s]{{0,3}}\b(?:is|are|ist|es|est|é|è)\s+(?:the|my|his|her|their|our|mein\w*|mi|ma|minha)\s+(?:\w+\s+){{0,2}}?(?:{_PHRASE_NAMES})",
    ),
)

_ASSIGNED = re.compile(
    r"""(?i)\b[\w.-]{0,40}?(?:secret|token|api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|passw(?:or)?d|pwd|
        credential|signature|sig)[\w-]{0,40}["']?\s*(?::=|=>|=|:)\s*["']?(?P<value>[^\s"'&;,<>]{6,})""",
    re.VERBOSE,
)
"""As in code, a configuration or a URL. The value counts where it has letters and digits."""

_GONE = "[removed]"
_PIECE, _OVERLAP = 1000, 300


@dataclass(frozen=True, slots=True)
class _Span:
    """Where a credential stands in a text, and what it is."""

    name: str
    start: int
    end: int


def secrets(text: str) -> list[str]:
    """The kinds of credentials in a text, such as `AWS key`, each once."""
    return list(dict.fromkeys(span.name for span in _spans(text)))


def card_numbers(text: str) -> list[str]:
    """Numbers of payment cards, as they are written (docmem/cards.py)."""
    return [text[card.start : card.end] for card in cards.found(text)]


def redacted(text: str) -> str:
    """`text` with each credential and card number replaced by `[removed]`."""
    kept, at = [], 0
    for span in sorted(_spans(text), key=lambda span: (span.start, -span.end)):
        if span.end > at:
            kept += [text[at : max(span.start, at)], _GONE if span.start >= at else ""]
            at = span.end
    plain = "".join(kept) + text[at:]
    for card in reversed(cards.found(plain)):
        plain = plain[: card.start] + _GONE + plain[card.end :]
    return plain


def _spans(text: str) -> Iterator[_Span]:
    for name, pattern in _TOKENS:
        yield from (_Span(name, *found.span()) for found in pattern.finditer(text))
    yield from _values("password", _ASSIGNED, text, lambda found: _is_mixed(found["value"]))
    yield from (_Span(spot.name, spot.start, spot.end) for spot in passwords.found(text))
    if _may_hold_token(text):
        yield from _detected(text)


def _values(name: str, pattern: re.Pattern[str], text: str, counts: Callable[[re.Match[str]], bool]) -> Iterator[_Span]:
    at = 0
    while found := pattern.search(text, at):
        if counts(found) and not found["value"].startswith(_GONE[:-1]):
            yield _Span(name, *found.span("value"))
        at = max(found.end("value"), found.start() + 1)


def _is_mixed(value: str) -> bool:
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _may_hold_token(text: str) -> bool:
    """Whether there is anything for detect-secrets, which takes 0.1 s to import: most texts have no such word."""
    return "-----BEGIN" in text or "PuTTY" in text or any(len(word) >= 16 and _is_mixed(word) for word in text.split())


def _detected(text: str) -> Iterator[_Span]:
    for start, piece in _pieces(text):
        for name, analyze in _detectors():
            for secret in analyze(piece):
                at = text.find(secret, start) if secret else -1
                if at >= 0:
                    yield _Span(name, at, at + len(secret))


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text, long ones in overlapping parts: some detectors take time by the square of a line."""
    for line in re.finditer(r"[^\n]+", text):
        for at in range(0, len(line[0]), _PIECE - _OVERLAP):
            yield line.start() + at, line[0][at : at + _PIECE]


@cache
def _detectors() -> tuple[tuple[str, Callable[[str], Iterator[str]]], ...]:
    """(what it finds, function from a line to what it found in it)."""
    found = []
    for path in _DETECTORS:
        module, _, name = path.partition(".")
        detector = getattr(importlib.import_module(f"detect_secrets.plugins.{module}"), name)()
        found.append((str(detector.secret_type), detector.analyze_string))
    return tuple(found)
