"""Names and keys: what may be a tenant, how a person becomes a subject key, how a memory gets its id.

All pure. Equality is the only comparison names are made for: never a prefix, never a pattern.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import unicodedata
from collections.abc import Iterable

from docmem.errors import InvalidName
from docmem.phrasing import phrase_last, plain

_TENANT = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_SUBJECT = re.compile(r"[0-9a-f]{64}")
_MEMORY_ID = re.compile(r"[0-9a-f]{16}")
_AGENT = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_LABEL_MAX = 200
_PUNCTUATION = ".,;:!?…\"'`()[]“”«»¿¡。，！？"
_ARTICLES = frozenset(["the", "a", "an"])
_SUBJECTS = frozenset(["user", "traveller", "traveler", "customer", "client", "guest", "person"])
_CONTRACTIONS = (
    (re.compile(r"\bcan(?:'t|not)\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\bshan't\b"), "shall not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"\b(i)'m\b"), r"\1 am"),
    (re.compile(r"\b(he|she|it|that|there|who)'s\b"), r"\1 is"),
    (re.compile(r"'re\b"), " are"),
    (re.compile(r"'ve\b"), " have"),
    (re.compile(r"'ll\b"), " will"),
)
_SLUG_MAX = 60
_PATH_MAX = 1024
_PART_MAX = 255
"""Bytes of one file name: more than that no disk holds, and no checkout either."""


def tenant_name(value: str) -> str:
    """Return `value` if it may name a tenant, else raise `InvalidName`."""
    if not isinstance(value, str) or not _TENANT.fullmatch(value):
        raise InvalidName(
            f"{value!r} can't be a tenant's name",
            hint="use 1 to 63 of a-z, 0-9 and '-', starting with a letter or digit",
        )
    return value


def agent_name(value: str) -> str:
    """Return `value` if it may name an agent, else raise `InvalidName`."""
    if not isinstance(value, str) or not _AGENT.fullmatch(value):
        raise InvalidName(f"{value!r} can't be an agent's name", hint="use 1 to 63 of a-z, 0-9, '_' and '-'")
    return value


def _one_line(value: str, what: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LABEL_MAX:
        raise InvalidName(f"a {what} is 1 to {_LABEL_MAX} characters of text, not {str(value)[:80]!r}")
    if any(unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} for char in value):
        raise InvalidName(f"a {what} is one line without control characters, not {value!r}")
    return value


def thread_id(value: str) -> str:
    """Return `value` if it may name a thread: one line of 1 to 200 characters."""
    return _one_line(value, "thread")


def turn_id(value: str) -> str:
    """Return `value` if it may name a turn: one line of 1 to 200 characters."""
    return _one_line(value, "turn id")


def external_id(value: str) -> str:
    """Return `value` if it may be another system's id of a memory: one line of 1 to 200 characters."""
    return _one_line(value, "external id")


def subject_of_phone(tenant: str, e164: str) -> str:
    """Key of the person with this verified phone: 64 hex digits. `e164` as `phonenumbers` formats it."""
    return _sha256(f"{tenant_name(tenant)}:phone:{e164}")


def subject_of_id(tenant: str, value: str) -> str:
    """Key of the person the host knows under this authenticated id: 64 hex digits."""
    return _sha256(f"{tenant_name(tenant)}:id:{_one_line(value, 'subject')}")


def subject_key(tenant: str, value: str) -> str:
    """Read a subject as commands take it: 64 lowercase hex digits are a key as it is, anything else an id."""
    return value if is_subject_key(value) else subject_of_id(tenant, value)


def is_subject_key(value: str) -> bool:
    """Whether `value` is a subject key as it stands."""
    return isinstance(value, str) and _SUBJECT.fullmatch(value) is not None


def in_cohort(tenant: str, subject: str, share: float) -> bool:
    """Whether a subject is among `share` (0 to 1) of a tenant's subjects; a larger share keeps those of a smaller."""
    return int(_sha256(f"{tenant}:cohort:{subject}")[:8], 16) < share * 2**32


def is_memory_id(value: str) -> bool:
    """Whether `value` is 16 lowercase hex digits."""
    return isinstance(value, str) and _MEMORY_ID.fullmatch(value) is not None


def normalized(text: str) -> str:
    """The text that identity and duplicates compare: NFKC, case folded, white space collapsed."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def memory_id(
    secret: bytes, *, tenant: str, subject: str, thread: str, evidence: Iterable[str], kind: str, text: str
) -> str:
    """Id of a memory: 16 hex digits of an HMAC over where it came from and what it says.

    A replayed create gets the same id and converges; the same statement from other turns gets another one.
    The key keeps an id from confirming a guess about erased text. `evidence` is turn ids, or one external id.
    """
    parts = [tenant, subject, thread, sorted(evidence), kind, normalized(text)]
    message = json.dumps(parts, ensure_ascii=True, separators=(",", ":")).encode()
    return hmac.new(secret, message, hashlib.sha256).hexdigest()[:16]


def thread_hash(thread: str) -> str:
    """64 hex digits that name a thread's watermark file."""
    return _sha256(thread_id(thread))


def spelled_out(text: str) -> str:
    """`text`, folded in case, with contractions in full: "doesn't" is "does not"."""
    folded = normalized(text).replace("’", "'")
    for pattern, full in _CONTRACTIONS:
        folded = pattern.sub(full, folded)
    return folded


def said(text: str) -> str:
    """What a statement says, as words: without punctuation, articles, plurals and the subject that it is said of.

    "The user likes kites!" and "Traveller likes kites." are one, so that a statement that was taken back isn't learned
    again because a model put it a little differently, or in other words that always mean the same (phrasing.py). Whom
    it names further on counts: "the user owes a client" and "a client owes the user" are two.
    """
    words = [
        word
        for each in spelled_out(phrase_last(text)).split()
        if (word := each.strip(_PUNCTUATION)) not in {"", *_ARTICLES}
    ]
    if words and words[0] in _SUBJECTS:
        del words[0]
    return " ".join(_singular(word) for word in plain(words))


def _singular(word: str) -> str:
    return word[:-1] if word.isascii() and len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def statement_hash(secret: bytes, subject: str, text: str) -> str:
    """64 hex digits under which `reverted.yaml` remembers a statement about a subject.

    Keyed like an id: what was taken back, or erased, can't be guessed from its hash.
    """
    return hmac.new(secret, f"{subject}\n{said(text)}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def proposal_hash(secret: bytes, subject: str, *parts: str) -> str:
    """64 hex digits under which `reverted.yaml` remembers a proposal that states nothing: a deletion, a profile value.

    `parts` say what was proposed: `("delete", id, text)`, `("profile", key, value)`. Keyed like a statement's hash.
    """
    message = json.dumps([subject, *(normalized(part) for part in parts)], ensure_ascii=True, separators=(",", ":"))
    return hmac.new(secret, message.encode(), hashlib.sha256).hexdigest()


def slug(text: str) -> str:
    """The start of `text` as lowercase ASCII words joined by '-', at most 60 bytes; 'memory' when none is left."""
    ascii_only = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", ascii_only)
    kept = ""
    for word in words:
        longer = f"{kept}-{word}" if kept else word
        if len(longer) > _SLUG_MAX:
            break
        kept = longer
    return kept or "memory"


def safe_path(path: str) -> str:
    """Return `path` if git may hold it as a file of a tenant's repo, else raise `InvalidName`.

    git's plumbing accepts `../x`, `.git/config` and empty parts, so nothing reaches it unchecked.
    """
    parts = path.split("/")
    if not path or len(path.encode("utf-8", "surrogatepass")) > _PATH_MAX or path.startswith("/"):
        raise InvalidName(f"{path[:80]!r} is not a path inside the repo")
    if any("\ud800" <= char <= "\udfff" for char in path):
        raise InvalidName(f"{path!r} is not UTF-8: no index can hold it, and not every disk", hint="rename the file")
    for part in parts:
        if part in {"", ".", ".."} or _is_dot_git(part) or "\0" in part or "\\" in part:
            raise InvalidName(f"{path!r} has a part {part!r} that no path in the repo may have")
        if len(part.encode("utf-8", "surrogatepass")) > _PART_MAX:
            raise InvalidName(f"{part[:40]!r}… is longer than the {_PART_MAX} bytes that a disk allows a name")
    return path


def is_safe_path(path: str) -> bool:
    """Whether git may hold `path` as a file of a tenant's repo."""
    try:
        safe_path(path)
    except InvalidName:
        return False
    return True


def _is_dot_git(part: str) -> bool:
    # NTFS and HFS+ read 'git~1', '.git ' and '.g\u200cit' as '.git' (CVE-2014-9390).
    visible = part
    if not part.isascii():
        visible = "".join(char for char in part if unicodedata.category(char) != "Cf")
    return visible.casefold().rstrip(". ") in {".git", "git~1"}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
