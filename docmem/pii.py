"""Personal data by kind, found by shape: what a tenant's policy allows, holds, takes out or refuses.

National ids are numbers of few digits: a form that many things have. So each is checked by its country's own rule
(python-stdnum), and one that is digits alone counts only beside a word that says what it is.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["email", "phone", "address", "bank_account", "national_id"]
Action: TypeAlias = Literal["allow", "hold", "redact", "reject"]

KINDS: tuple[Kind, ...] = ("email", "phone", "address", "bank_account", "national_id")


@dataclass(frozen=True, slots=True)
class Found:
    """One piece of personal data in a text."""

    kind: Kind
    start: int
    end: int


_IDS: Mapping[str, tuple[tuple[str, str, bool], ...]] = {
    # country: (module of stdnum, how it is written, whether that form says by itself what it is)
    "ar": (("ar.dni", r"\d{2}\.\d{3}\.\d{3}", False),),
    "be": (("be.nn", r"\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}", True), ("be.nn", r"\d{11}", False)),
    "bg": (("bg.egn", r"\d{10}", False),),
    "br": (("br.cpf", r"\d{3}\.\d{3}\.\d{3}-\d{2}", True), ("br.cpf", r"\d{11}", False)),
    "ca": (("ca.sin", r"\d{3}[ -]\d{3}[ -]\d{3}", False),),
    "ch": (("ch.ssn", r"756\.\d{4}\.\d{4}\.\d{2}", True), ("ch.ssn", r"756\d{10}", False)),
    "cl": (("cl.rut", r"\d{1,2}\.\d{3}\.\d{3}-[\dkK]", True), ("cl.rut", r"\d{7,8}-[\dkK]", False)),
    "cn": (("cn.ric", r"\d{17}[\dXx]", True),),
    "cz": (("cz.rc", r"\d{6}/\d{3,4}", True),),
    "de": (("de.idnr", r"\d{2} \d{3} \d{3} \d{3}", False), ("de.idnr", r"\d{11}", False)),
    "dk": (("dk.cpr", r"\d{6}-\d{4}", False), ("dk.cpr", r"\d{10}", False)),
    "ee": (("ee.ik", r"[1-6]\d{10}", False),),
    "es": (("es.dni", r"\d{8}-?[A-Z]", True), ("es.nie", r"[XYZ]-?\d{7}-?[A-Z]", True)),
    "fi": (("fi.hetu", r"\d{6}[-+A-FU-Y]\d{3}[0-9A-Y]", True),),
    "fr": (("fr.nir", r"[12] ?\d{2} ?\d{2} ?\d[\dAB] ?\d{3} ?\d{3} ?\d{2}", True),),
    "gb": (("gb.nhs", r"\d{3}[ -]\d{3}[ -]\d{4}", False),
           ("", r"[A-CEGHJ-PR-TW-Z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-D]", True)),
    "gr": (("gr.amka", r"\d{11}", False),),
    "hr": (("hr.oib", r"\d{11}", False),),
    "id": (("id.nik", r"\d{16}", False),),
    "ie": (("ie.pps", r"\d{7}[A-W][A-IW]?", True),),
    "il": (("il.idnr", r"\d{8,9}", False),),
    "in": (("in_.aadhaar", r"\d{4}[ -]?\d{4}[ -]?\d{4}", False),
           ("in_.pan", r"[A-Z]{3}[ABCFGHJLPT][A-Z]\d{4}[A-Z]", True)),
    "it": (("it.codicefiscale", r"[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]", True),),
    "kr": (("kr.rrn", r"\d{6}-[1-8]\d{6}", True),),
    "lt": (("lt.asmens", r"[3-6]\d{10}", False),),
    "mx": (("mx.curp", r"[A-Z]{4}\d{6}[HM][A-Z]{5}[0-9A-Z]\d", True),),
    "my": (("my.nric", r"\d{6}-\d{2}-\d{4}", True), ("my.nric", r"\d{12}", False)),
    "nl": (("nl.bsn", r"\d{9}", False), ("nl.bsn", r"\d{4}\.\d{2}\.\d{3}", True)),
    "no": (("no.fodselsnummer", r"\d{6} ?\d{5}", False),),
    "pl": (("pl.pesel", r"\d{11}", False),),
    "pt": (("pt.nif", r"\d{3} ?\d{3} ?\d{3}", False), ("pt.cc", r"\d{8} ?\d ?[A-Z]{2}\d", True)),
    "ro": (("ro.cnp", r"[1-9]\d{12}", False),),
    "se": (("se.personnummer", r"(?:\d{2})?\d{6}[-+]\d{4}", False), ("se.personnummer", r"\d{12}", False)),
    "sg": (("", r"[STFG]\d{7}[A-Z]", True),),
    "th": (("th.pin", r"\d-\d{4}-\d{5}-\d{2}-\d", True), ("th.pin", r"\d{13}", False)),
    "tr": (("tr.tckimlik", r"[1-9]\d{10}", False),),
    "us": (("us.ssn", r"\d{3}-\d{2}-\d{4}", True), ("us.ssn", r"\d{9}", False),
           ("us.itin", r"9\d{2}-\d{2}-\d{4}", True)),
    "za": (("za.idnr", r"\d{13}", False),),
}  # fmt: skip

COUNTRIES = frozenset(_IDS)
"""Countries whose national ids are known, as two letters."""

_SAYS_ID = re.compile(
    r"""(?ix)\b(?:nric|mykad|ssn|itin|sin|nino|cpf|curp|dni|nie|nif|nir|rut|pesel|bsn|cpr|oib|amka|egn|cnp|tin|pan|nik|ktp|
        pps|rrn|aadhaar|aadhar|tckn|personnummer|fødselsnummer|fodselsnummer|henkilötunnus|rodné\ číslo|codice\ fiscale|
        steuer-?id\w*|identifikationsnummer|sozialversicherungsnummer|ahv|tc\ kimlik|teudat\ zehut|nhs|
        (?:national|personal|citizen|resident|government)\ (?:id|identity|identification|insurance)\w*|
        identity\ (?:card|number|document)|id\ (?:card|number|no|document)|social\ security|tax\ (?:id|number|file)|
        kad\ pengenalan|ausweis\w*|identité|identidad|identidade|identità|sécurité\ sociale|seguridad\ social|
        insurance\ number|health\ number)\b|身份证|身分證|주민등록|マイナンバー"""
)
_NEAR = 60
"""Characters around a number in which a word may say that it is an id."""

_SHAPES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("email", re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")),
    ("bank_account", re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")),
    ("bank_account", re.compile(r"(?i)\b(?:bank\s+)?account\s+(?:number|no\.?|nr\.?)\s*(?:is|:)?\s*\d[\d -]{6,20}\d")),
    ("phone", re.compile(r"(?<![\w.])(?:\+|00)\d[\d ()./-]{6,20}\d\b")),
    (
        "phone",
        re.compile(
            r"(?i)\b(?:phone|mobile|cell|tel|telephone|whatsapp|handphone|handy|telefon|móvil|celular|téléphone|portable|"
            r"telefone)\w*\.?(?:\s+(?:number|no\.?|nummer|is|ist|est|es|é|on|at|under))*\s*:?\s*"
            r"(?P<at>\(?\d[\d ()./-]{5,18}\d)"
        ),
    ),
    (
        "address",
        re.compile(
            r"\b\d{1,5}[a-zA-Z]?,?\s+(?:[A-Z][\w'.-]*\s+){1,4}(?:Street|St|Road|Rd|Avenue|Ave|Lane|Ln|Drive|Dr|Boulevard|"
            r"Blvd|Court|Ct|Crescent|Close|Terrace|Square|Sq|Way|Place|Pl|Parkway|Highway)\b\.?"
        ),
    ),
    (
        "address",
        re.compile(
            r"\b[A-ZÄÖÜ][\wäöüß-]*(?:straße|strasse|str\.|weg|gasse|platz|allee|ufer|laan|straat|gata|gatan)\s+"
            r"\d{1,4}[a-z]?\b"
        ),
    ),
    (
        "address",
        re.compile(
            r"\b(?:(?:No\.?\s*)?\d{1,4}[A-Z]?,?\s+)?(?:Jalan|Jln|Lorong|Persiaran|Lebuh)\s+(?:[A-Z0-9][\w/'-]*\s*){1,4}|"
            r"\b\d{1,4}(?:\s?bis)?,?\s+(?:rue|avenue|boulevard|place|impasse|chemin)\s+(?:de\s+la\s+|de\s+l'|du\s+|des\s+|de\s+)?[A-Z]\w+|"
            r"\b(?:Calle|Avenida|Av\.|Paseo|Plaza|Rua|Travessa|Via|Viale|Piazza|Corso)\s+(?:[\w']+\s+){0,4}?[\w']+,?\s+(?:n[.ºo°]\s*)?\d{1,5}\b"
        ),
    ),
)


def found(text: str, *, countries: Sequence[str] = ()) -> list[Found]:
    """The personal data in a text, by place. `countries`: whose national ids are looked for (none: all known)."""
    every = [*_shaped(text), *_national_ids(text, countries)]
    return sorted(every, key=lambda each: (each.start, -each.end, each.kind != "national_id"))


def strictest(text: str, actions: Mapping[Kind, Action], *, countries: Sequence[str] = ()) -> Action:
    """What the policy says of a text: of what is found in it, the strictest action."""
    order: tuple[Action, ...] = ("allow", "redact", "hold", "reject")
    asked = [actions.get(each.kind, "allow") for each in _relevant(text, actions, countries)]
    return max(asked, key=order.index, default="allow")


def redacted(text: str, actions: Mapping[Kind, Action], *, countries: Sequence[str] = ()) -> str:
    """`text` with what the policy takes out replaced by its kind, such as `[email]`."""
    parts, at = [], 0
    for each in _relevant(text, actions, countries):
        if actions.get(each.kind) == "redact" and each.start >= at:
            parts += [text[at : each.start], f"[{each.kind.replace('_', ' ')}]"]
            at = each.end
    return "".join(parts) + text[at:]


def _relevant(text: str, actions: Mapping[Kind, Action], countries: Sequence[str]) -> list[Found]:
    """What is found and not simply allowed; national ids aren't even looked for where the policy allows them."""
    every = _shaped(text)
    if actions.get("national_id", "allow") != "allow":
        every += _national_ids(text, countries)
    strict = [each for each in every if actions.get(each.kind, "allow") != "allow"]
    return sorted(strict, key=lambda each: (each.start, -each.end, each.kind != "national_id"))


def _shaped(text: str) -> list[Found]:
    every = list(_by_shape(text))
    others = [each for each in every if each.kind != "phone"]
    return [each for each in every if each.kind != "phone" or not any(_overlap(each, other) for other in others)]


def _overlap(one: Found, other: Found) -> bool:
    return one.start < other.end and other.start < one.end


def _by_shape(text: str) -> Iterator[Found]:
    for kind, pattern in _SHAPES:
        for match in pattern.finditer(text):
            group: int | str = "at" if "at" in pattern.groupindex else 0
            value = match[group]
            if kind == "phone" and not 7 <= sum(map(str.isdigit, value)) <= 15:
                continue
            if kind == "bank_account" and value[:2].isalpha() and value[:2].isupper() and not _is_iban(value):
                continue
            start, end = match.span(group)
            yield Found(kind, start, start + len(text[start:end].rstrip()))


def _national_ids(text: str, countries: Sequence[str]) -> Iterator[Found]:
    for country in countries or sorted(COUNTRIES):
        for module, form, speaks in _IDS.get(country, ()):
            for match in _form(form).finditer(text):
                beside = text[max(0, match.start() - _NEAR) : match.end() + _NEAR]
                if (speaks or _SAYS_ID.search(beside)) and _is_valid(country, module, match[0]):
                    yield Found("national_id", *match.span())


@cache
def _form(form: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.-])(?:{form})(?![\w-])")


def _is_valid(country: str, module: str, text: str) -> bool:
    if not module:
        return _is_singaporean(text) if country == "sg" else True
    return bool(_checker(module)(text))


@cache
def _checker(module: str) -> Callable[[str], bool]:
    checker: Callable[[str], bool] = importlib.import_module(f"stdnum.{module}").is_valid
    return checker


def _is_iban(text: str) -> bool:
    return _checker("iban")(text)


def _is_singaporean(text: str) -> bool:
    """The check letter of an NRIC or FIN, which stdnum doesn't have."""
    total = sum(weight * int(digit) for weight, digit in zip((2, 7, 6, 5, 4, 3, 2), text[1:8], strict=True))
    letters = "JZIHGFEDCBA" if text[0] in "ST" else "XWUTRQPNMLK"
    return letters[(total + (4 if text[0] in "TG" else 0)) % 11] == text[8]
