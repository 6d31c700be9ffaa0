"""What must never be stored: credentials and card numbers. Found by shape; the list says what each shape is.

Precision matters on both sides: a booking code is no token, and a missed key in git history is a rewrite.
"""

from __future__ import annotations

import re

_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("private key", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [^\n]*|\Z)"),
        ("AWS key", r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b"),
        ("GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,})"),
        ("GitLab token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
        ("Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
        ("Slack webhook", r"https://hooks\.slack\.com/services/\S+"),
        ("Google key", r"\bAIza[A-Za-z0-9_-]{30,}"),
        ("Stripe key", r"\b[srp]k_(?:live|test)_[A-Za-z0-9]{10,}"),
        ("API key", r"\bsk-(?:[a-z]+-)*[A-Za-z0-9_-]{16,}"),
        ("npm token", r"\bnpm_[A-Za-z0-9]{30,}"),
        ("Hugging Face token", r"\bhf_[A-Za-z0-9]{30,}"),
        ("SendGrid key", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
        ("Twilio key", r"\b(?:SK|AC)[0-9a-f]{32}\b"),
        ("Telegram token", r"\b\d{8,10}:AA[A-Za-z0-9_-]{30,}"),
        ("JWT", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
        ("bearer token", r"(?i)\bbearer\s+[A-Za-z0-9._~+/-]{20,}=*"),
        ("connection string", r"\b[a-z][a-z0-9+.-]{1,30}://[^\s/:@]{0,100}:[^\s/@]{1,200}@[^\s]{1,200}"),
        (
            "password",
            r"(?i)\b(?:password|passwd|passphrase|passcode|pwd|pin(?: code| number)?|secret(?: key)?|"
            r"api[ _-]?key|access[ _-]?(?:key|token)|auth[ _-]?token|cvv|cvc|kata sandi|contraseña|passwort|"
            r"mot de passe|senha)\b"
            r"(?:['\"]?\s*(?:=|:)\s*|\s+(?:is|was|ist|est|es|é|adalah)(?:\s+now)?\s*:?\s+)"
            r"['\"]?(?!(?:the|a|an|not|no|in|on|at|to|too|very|required|needed|forgotten|lost|unknown|important)\b)"
            r"[^\s'\"]{3,}",
        ),
    )
)
_DIGITS = re.compile(r"(?<![\w.+-])\d(?:[ -]?\d){12,18}(?![\w-])")
_GONE = "[removed]"


def secrets(text: str) -> list[str]:
    """The kinds of credentials in a text, such as `AWS key`."""
    return [name for name, pattern in _PATTERNS if pattern.search(text)]


def card_numbers(text: str) -> list[str]:
    """Numbers of 13 to 19 digits that pass the check sum of payment cards."""
    return [found[0] for found in _DIGITS.finditer(text) if is_card_number(found[0])]


def is_card_number(text: str) -> bool:
    """The Luhn check over the digits of `text`. One repeated digit is no card."""
    digits = [int(char) for char in text if char.isdigit()]
    if not 13 <= len(digits) <= 19 or len(set(digits)) == 1:
        return False
    doubled = [digit * 2 - 9 if digit > 4 else digit * 2 for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def redacted(text: str) -> str:
    """`text` with each credential and card number replaced by `[removed]`."""
    for _, pattern in _PATTERNS:
        text = pattern.sub(_GONE, text)
    return _DIGITS.sub(lambda found: _GONE if is_card_number(found[0]) else found[0], text)
