"""`offline`: a stand-in for a language model, made of rules. For the demo, for tests and for trying things out.

It reads plain first-person English: names, budgets, diets, trips, homes, likes and dislikes, "always" and "never", the
language of answers; later values correct earlier ones. It prefers to miss a statement over inventing one. How little
it finds compared with a model is measured (evals/README.md); don't run a product on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from docmem.model import Kind, Memory, Turn
from docmem.prompt import Request
from docmem.reply import Answer, AttributePair, Operation, Parsed, ProfilePatch, Reply
from docmem.tenant_config import Agent, Topic
from docmem.wording import likeness, overlap

NAME = "offline"

_CONFIDENCE = 0.8
_QUOTE = 160
_WHO = re.compile(r"The (?!user\b)([a-z]{3,20})(?:'s)?\b")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_UNSURE = re.compile(r"\b(?:if|maybe|perhaps|might|would|could|wonder\w*|imagine|suppose|someday|kidding)\b", re.I)
_MONEY = (
    r"(?:(?:RM|MYR|USD|EUR|GBP|SGD|AUD|CHF|JPY|[$€£¥])\s?\d(?:[\d.,]*\d)?k?|"
    r"\d(?:[\d.,]*\d)?k?\s?(?:euros?|dollars?|pounds?|ringgit|francs?|yen|EUR|USD|GBP|MYR|RM))"
)
_PERSON = r"wife|husband|partner|son|daughter|mother|father|mum|mom|dad|brother|sister|friend|child|baby"
_LANGUAGES = (
    "English|Malay|Bahasa Melayu|Indonesian|German|French|Spanish|Portuguese|Italian|Dutch|Chinese|Mandarin|Cantonese|"
    "Japanese|Korean|Tamil|Hindi|Arabic|Russian|Turkish|Thai|Vietnamese|Polish|Swedish|Danish|Norwegian|Finnish|Greek"
)
_DIETS = (
    r"vegetarian|vegan|pescatarian|gluten[- ]free|lactose[- ]intolerant|coeliac|celiac|diabetic|"
    r"allergic to [\w ]+?(?=[,.;!]| and | but |$)"
)
_PLACE = r"[A-Z][\w'-]+(?:\s(?:and\s)?[A-Z][\w'-]+)*"
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_WHEN = (
    rf"(?:in|on|from|until|for|with|next|this|at the (?:start|end) of)\s(?:[\w'-]+\s){{0,4}}?"
    rf"(?:{_MONTH}(?:\s20\d\d)?|\d{{1,2}}(?:st|nd|rd|th)?(?:\sof)?\s{_MONTH}|spring|summer|autumn|winter|week|month|year|"
    rf"days?|weeks?|adults?|children|{_PERSON}|kids|family)"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern of speech and what it comes to. `single`: a person has one of it, so a later one corrects it."""

    slot: str
    pattern: re.Pattern[str]
    kind: Kind
    importance: int
    hints: str
    text: Callable[[re.Match[str], str], str]
    single: re.Pattern[str] | None = None
    attribute: Callable[[re.Match[str]], str] | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A rule that matched a sentence of a user's turn. `text` is the statement."""

    rule: Rule
    match: re.Match[str]
    turn: Turn
    sentence: str
    text: str


@dataclass(frozen=True, slots=True)
class Offline:
    """The rules as a model."""

    name: str = NAME

    def propose(self, request: Request) -> Answer:
        """Operations and a profile patch, by the rules. Costs nothing and never fails."""
        found = _latest(_found(request))
        forgotten = list(_forgotten(request))
        gone = {operation.id for operation in forgotten}
        stated = [
            operation for operation in _operations(found, request) if operation.id not in gone or not operation.id
        ]
        patch = ProfilePatch(
            preferred_language=_language(request.turns),
            locale=None,
            lifecycle_stage=None,
            attributes=_attributes(found, request.agent),
        )
        return Answer(Parsed(Reply(operations=[*stated, *forgotten], profile=patch)))


# -------------------------------------------------------------------------------------------------------- the rules


def _fixed(text: str) -> Callable[[re.Match[str], str], str]:
    """A statement with the pattern's groups put in; `{who}` is the person."""

    def render(match: re.Match[str], who: str) -> str:
        groups = {name: _third_person(value or "").strip(" ,;") for name, value in match.groupdict().items()}
        return " ".join(text.format(who=who, **groups).split())

    return render


def _conjugated(match: re.Match[str], who: str) -> str:
    often = f"{match['often'].lower()} " if match.groupdict().get("often") else ""
    return f"{who} {often}{_with_s(match['verb'].lower())} {_third_person(match['rest'])}."


def _imperative(match: re.Match[str], who: str) -> str:
    rest = _third_person(match["rest"]).strip()
    return f"{match['often'].capitalize()} {rest}."


def _group(name: str) -> Callable[[re.Match[str]], str]:
    return lambda match: match[name].strip(" .,;")


def _rule(slot: str, pattern: str, kind: Kind, importance: int, hints: str, **more: object) -> Rule:
    text = more.pop("text")
    single = more.pop("single", None)
    return Rule(
        slot,
        re.compile(pattern),
        kind,
        importance,
        hints,
        text if callable(text) else _fixed(str(text)),
        re.compile(str(single)) if single else None,
        **more,  # type: ignore[arg-type]
    )


_REST = r"(?P<rest>[^.!?;]{3,160})"
RULES: tuple[Rule, ...] = (
    _rule(
        "language",
        rf"(?i:^(?:please\s+)?(?:always\s+)?(?:answer|reply|respond|write|speak)(?:\s+(?:to\s+)?me)?\s+in)\s+"
        rf"(?P<language>{_LANGUAGES})\b",
        "preference",
        8,
        "answer reply language",
        text="Always answer in {language}.",
        single=r"^Always answer in \w+",
    ),
    _rule(
        "standing",
        rf"(?i:^(?:please,?\s+)?(?P<often>always|never))\s+{_REST}",
        "preference",
        8,
        "answer reply form",
        text=_imperative,
    ),
    _rule(
        "name",
        r"\b[Mm]y name is (?P<name>[A-Z][\w'-]+(?:\s[A-Z][\w'-]+)?)",
        "fact",
        7,
        "name person contact",
        text="{who}'s name is {name}.",
        single=r"'s name is ",
        attribute=_group("name"),
    ),
    _rule(
        "budget",
        rf"(?i:\b(?:budget|spend|spending)\b)[^.!?\n]{{0,40}}?(?P<money>{_MONEY}(?:\s(?:for|per)\s(?:the\s)?\w+)?)",
        "fact",
        6,
        "budget money spend",
        text="{who}'s budget is {money}.",
        single=r"\bbudget is ",
        attribute=_group("money"),
    ),
    _rule(
        "budget",
        r"\b(?P<money>mid-range|tight|small|low|modest|generous|big|luxury)\s+budget\b",
        "fact",
        6,
        "budget money spend",
        text="{who}'s budget is {money}.",
        single=r"\bbudget is ",
        attribute=_group("money"),
    ),
    _rule(
        "diet",
        rf"\b(?:I'm|I am|[Ww]e're|[Ww]e are)\s+(?:both\s+|all\s+)?(?:an?\s+)?(?:strict(?:ly)?\s+)?(?P<diet>{_DIETS})",
        "fact",
        8,
        "diet food eat constraint allergy",
        text="{who} is {diet}.",
        attribute=_group("diet"),
    ),
    _rule(
        "diet",
        r"\b(?:I|[Ww]e)\s+(?:don't|do not|can't|cannot|never)\s+eat\s+(?P<food>[\w ,]{3,60})",
        "fact",
        8,
        "diet food eat constraint allergy",
        text="{who} doesn't eat {food}.",
    ),
    _rule(
        "relative",
        rf"\b[Mm]y\s+(?P<person>{_PERSON})\s+(?P<verb>is|has|can't|cannot|needs|hates|loves|likes|prefers|uses)\s+{_REST}",
        "fact",
        7,
        "constraint mobility diet companion",
        text="{who}'s {person} {verb} {rest}.",
    ),
    _rule(
        "home",
        rf"\b(?:I|[Ww]e)(?:'m|'re|\s+am|\s+are)?\s+(?:live|living|based)\s+in\s+(?P<place>{_PLACE})",
        "fact",
        7,
        "home live city",
        text="{who} lives in {place}.",
        single=r" lives in ",
        attribute=_group("place"),
    ),
    _rule(
        "trip",
        rf"\b(?:I|[Ww]e)(?:'m|'re|\s+am|\s+are|'ll|\s+will|\s+want\s+to|\s+plan\s+to)?\s+"
        rf"(?:just\s+)?(?:plan|planning|go|going|fly|flying|travel|travelling|traveling|visit|visiting|booked|heading)\s+"
        rf"(?:a\s+trip\s+)?(?:to\s+)?(?P<place>{_PLACE})(?P<when>(?:\s{_WHEN})*)",
        "fact",
        7,
        "trip plan travel",
        text="{who} plans a trip to {place} {when}.",
    ),
    _rule(
        "rather",
        rf"\b(?:I|[Ww]e)(?:'d|\s+would)\s+rather\s+{_REST}",
        "preference",
        6,
        "like preference travel",
        text="{who} would rather {rest}.",
    ),
    _rule(
        "like",
        rf"\b(?:I|[Ww]e)\s+(?:really\s+|usually\s+|always\s+)?(?P<verb>prefer)\s+{_REST}",
        "preference",
        6,
        "like preference prefer travel",
        text=_conjugated,
    ),
    _rule(
        "like",
        rf"\b(?:I|[Ww]e)\s+(?:really\s+|also\s+)?(?P<verb>love|like|enjoy|hate|dislike)\s+{_REST}",
        "fact",
        5,
        "like dislike preference travel",
        text=_conjugated,
    ),
    _rule(
        "habit",
        rf"\b(?:I|[Ww]e)\s+(?P<often>always|never)\s+(?!eat\b)(?P<verb>[a-z]+)\s+{_REST}",
        "preference",
        6,
        "like preference travel",
        text=_conjugated,
    ),
    _rule(
        "need",
        rf"\b(?:I|[Ww]e)\s+(?P<verb>need)\s+(?!to\s+(?:know|see|think|check|go)\b|your\b|help\b|some\b){_REST}",
        "fact",
        6,
        "constraint must respect mobility",
        text=_conjugated,
    ),
    _rule(
        "unable",
        rf"\b(?:I|[Ww]e)\s+(?:can't|cannot)\s+(?!eat\b|wait\b|find\b|see\b|remember\b|believe\b|decide\b){_REST}",
        "fact",
        7,
        "constraint must respect mobility",
        text="{who} can't {rest}.",
    ),
    _rule(
        "past",
        r"\b(?:I|[Ww]e)\s+(?P<verb>visited|stayed|went|flew|travelled|traveled)\s+(?P<rest>[^.!?;]{3,120}?"
        r"(?:last\s\w+|in\s20\d\d|\w+\sago))",
        "episode",
        4,
        "past trip happened",
        text="{who} {verb} {rest}.",
    ),
)
_FORGET = re.compile(
    r"(?i:\b(?:forget|delete|scrap|remove)\s+(?:what\s+i\s+said\s+)?(?:about\s+)?(?:the|my|our|that)\s+)"
    r"(?P<what>[^.!?,;]{3,80})"
)
_ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "name": ("name", "full_name"),
    "budget": ("budget",),
    "diet": ("diet", "dietary_needs"),
    "home": ("home_city", "city", "home", "location"),
}
"""Keys of declared attributes that a slot fills."""
_CARD_ONLY = frozenset(["name", "home"])
"""Slots that need no memory where the profile has a place for them."""


# ------------------------------------------------------------------------------------------------------ extraction


def _found(request: Request) -> Iterator[Found]:
    who = _who(request.agent)
    for turn in request.turns:
        if turn.role == "user":
            for sentence in _SENTENCE.split(turn.text):
                yield from _in_sentence(sentence.strip().replace("’", "'"), turn, who)


def _in_sentence(sentence: str, turn: Turn, who: str) -> Iterator[Found]:
    """What the first rule of each slot makes of a statement; questions and hypotheticals state nothing."""
    if sentence.endswith("?") or _UNSURE.search(sentence.replace("would rather", "")) or _FORGET.search(sentence):
        return
    seen: set[str] = set()
    for rule in RULES:
        match = rule.pattern.search(sentence)
        if match is None or rule.slot in seen or ("language" in seen and rule.slot == "standing"):
            continue
        seen.add(rule.slot)
        yield Found(rule, match, turn, sentence, rule.text(match, who).replace(" .", "."))


def _latest(found: Iterator[Found]) -> list[Found]:
    """Of what a person has only one of, the last counts; of equal statements, the first."""
    kept: dict[str, Found] = {}
    for each in found:
        key = each.rule.slot if each.rule.single is not None else each.text
        if each.rule.single is not None:
            kept.pop(key, None)
        kept.setdefault(key, each)
    return list(kept.values())


def _operations(found: Sequence[Found], request: Request) -> Iterator[Operation]:
    for each in found:
        topic = _topic(each, request.agent.topics)
        if each.rule.slot in _CARD_ONLY and _attribute_of(each, request.agent):
            continue
        if topic is None or any(likeness(memory.text, each.text) == "same" for memory in request.memories.values()):
            continue
        handle = _corrected(each, request.memories)
        yield Operation(
            op="update" if handle else "create",
            id=handle,
            kind=topic.kind or each.rule.kind,
            topic=topic.name,
            text=each.text,
            confidence=_CONFIDENCE,
            importance=each.rule.importance,
            evidence_turns=[each.turn.id],
            quote=_quote(each.match[0]),
        )


def _corrected(found: Found, memories: Mapping[str, Memory]) -> str | None:
    """The handle of the memory that a single value replaces."""
    single = found.rule.single
    if single is None:
        return None
    return next((handle for handle, memory in memories.items() if single.search(memory.text)), None)


def _forgotten(request: Request) -> Iterator[Operation]:
    """Deletions the user asks for, where it is plain which memory is meant."""
    for turn in request.turns:
        match = _FORGET.search(turn.text) if turn.role == "user" else None
        if match is None:
            continue
        meant = [handle for handle, memory in request.memories.items() if overlap(match["what"], memory.text) == 1]
        if len(meant) == 1:
            memory = request.memories[meant[0]]
            yield Operation(
                op="delete",
                id=meant[0],
                kind=memory.kind,
                topic=memory.topic or "",
                text=memory.text,
                confidence=_CONFIDENCE,
                importance=memory.importance,
                evidence_turns=[turn.id],
                quote=_quote(match[0]),
            )


def _attributes(found: Sequence[Found], agent: Agent) -> list[AttributePair]:
    values: dict[str, str] = {}
    for each in found:
        key = _attribute_of(each, agent)
        if key is not None and each.rule.attribute is not None:
            values[key] = each.rule.attribute(each.match)
    return [AttributePair(key=key, value=value) for key, value in values.items()]


def _attribute_of(found: Found, agent: Agent) -> str | None:
    """The declared attribute that a statement fills; an allergy is more than a value to overwrite."""
    declared = {attribute.key for attribute in agent.attributes}
    if "allergic" in found.text:
        return None
    return next((key for key in _ATTRIBUTES.get(found.rule.slot, ()) if key in declared), None)


def _language(turns: Sequence[Turn]) -> str | None:
    rule = RULES[0]
    said = [
        match["language"]
        for turn in turns
        if turn.role == "user"
        for sentence in _SENTENCE.split(turn.text)
        if (match := rule.pattern.search(sentence.strip()))
    ]
    return said[-1] if said else None


def _topic(found: Found, topics: Sequence[Topic]) -> Topic | None:
    """The declared topic that shares most words with the statement; None where none shares any."""
    words = _words(f"{found.rule.hints} {found.text}")
    best: tuple[int, Topic | None] = (0, None)
    for topic in topics:
        if topic.kind not in (None, found.rule.kind):
            continue
        examples = " ".join(f"{example.says} {example.memory or ''}" for example in topic.examples)
        weighed = ((3, topic.name), (2, topic.description), (1, examples))
        score = sum(weight * len(words & _words(text)) for weight, text in weighed)
        if score > best[0]:
            best = (score, topic)
    return best[1]


def _words(text: str) -> set[str]:
    return {word.rstrip("s") for word in re.findall(r"[a-z]{4,}", text.lower())} - {"user", "traveller", "with"}


def _who(agent: Agent) -> str:
    """What the examples call the person: the traveller, the customer; else the user."""
    for topic in agent.topics:
        for example in topic.examples:
            match = _WHO.match(example.memory or "")
            if match:
                return f"The {match[1]}"
    return "The user"


def _quote(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _QUOTE else text[:_QUOTE].rsplit(" ", 1)[0]


def _with_s(verb: str) -> str:
    if verb in {"have", "be", "do", "go"}:
        return {"have": "has", "be": "is", "do": "does", "go": "goes"}[verb]
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")


_PRONOUNS = {"my": "their", "our": "their", "me": "them", "us": "them", "i": "they", "we": "they", "mine": "theirs",
             "myself": "themselves", "ourselves": "themselves", "i'm": "they're", "we're": "they're"}  # fmt: skip


def _third_person(text: str) -> str:
    return re.sub(
        r"\b[A-Za-z]+(?:'m|'re)?\b", lambda found: _PRONOUNS.get(found[0].lower(), found[0]), text.strip(" ,")
    )
