"""Evidence: whether what a person said in a window bears out what is to be kept about them. Pure.

Words can't tell whether a statement is true; they can tell who said it. A statement or a value is borne out by the
user's own turns, or by what an assistant asked and the user confirmed in the turn right after it. What stands only in
the assistant's or a tool's turns is no evidence, nor is a guess. Paraphrase is the rule and not the exception, so
numbers are compared as numbers ("two of us", 2 adults; RM 12k, 12,000), words by their stems, and where nothing can
be compared (another language, other words) a person looks: `unsupported`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal, TypeAlias

from docmem.model import Turn
from docmem.names import normalized
from docmem.parts import Parts, parts, words_of

Finding: TypeAlias = Literal["borne_out", "said_by_others", "speculation", "not_said", "unsupported"]
"""What the turns say of a statement or value. All but `borne_out` are codes of admission."""

_HEDGE = re.compile(
    r"\b(?:maybe|perhaps|might|possibly|not sure|unsure|some ?day|one day|i wonder|wondering|i guess|toying with|"
    r"mungkin|vielleicht|peut-être|quizás?|talvez|forse|misschien|kanske|może)\b|может быть|也许|或许|说不定|"
    r"もしかして|かもしれない",
    re.IGNORECASE,
)
"""A guess, of what comes after it."""
_IMAGINED = re.compile(
    r"\b(?:what if|if (?:i|we) (?:ever |only |just )?(?:were|was|had|could|win|won)|"
    r"if (?:money|it|only|my|our)\b[^.!?]{0,30}?\b(?:were|was|had|could|would|weren't|wasn't)|"
    r"were (?:i|we)|hypothetical\w*|suppos(?:e|ing)|imagin(?:e|ing)|in theory|would be nice|could be fun|let's say|"
    r"say (?:i|we) (?:were|had|won)|"
    r"(?:i|we) wish|in another life|pretend\w*|in case (?:i|we)|wenn (?:ich|wir)\b[^.!?]{0,40}?\b(?:wär\w*|hätt\w*|"
    r"könnt\w*)|angenommen|si (?:yo )?(?:fuera|fuese|tuviera|pudiera|fuéramos|tuviéramos)|si j'(?:étais|avais)|"
    r"se (?:eu )?(?:fosse|tivesse|pudesse)|se (?:io )?(?:fossi|avessi)|kalau(?:lah)? (?:saya|aku|kami)|sekiranya|"
    r"seandainya|andai\w*|als ik\b[^.!?]{0,40}?\b(?:was|had|zou))\b|если бы|如果|假如|要是|もし",
    re.IGNORECASE,
)
"""What is only imagined, all of its sentence."""
_STILL_OPEN = re.compile(
    r"\b(?:consider\w*|think\w* (?:about|of)|might|may|maybe|perhaps|possibl\w*|unsure|undecided|not sure|wonder\w*|"
    r"dream\w*|idea|interested|would like|someday|wish\w*|if)\b",
    re.IGNORECASE,
)
_ACKNOWLEDGING = re.compile(
    r"ok|okay|k|kk|thanks|thank|you|thx|ty|cool|great|nice|good|hi|hello|hey|bye|goodbye|got|it|alright|perfect|lovely|"
    r"awesome|fine|hmm?|oh|ah|lol|haha|cheers|much|so|very|wow|welcome|night|morning|evening|danke|merci|gracias|"
    r"obrigad[oa]|terima|kasih|grazie|tak"
)
_OPENING = (
    r"^(?:(?:oh|ah|um|hm+|well|hi|hey|hello|ok|okay|great|perfect|thanks|thank you|lovely|honestly|actually|sorry|"
    r"ach)\b[\s,.!…-]*)*"
)
_AFFIRMS = re.compile(
    _OPENING
    + r"(?:(?:yes|yep|yeah|yup|yess|correct|right|exactly|indeed|sure|absolutely|definitely|certainly|of course|"
    r"obviously|naturally|totally|for sure|you bet|aye|affirmative|spot on|"
    r"precisely|true|that(?:'s| is) (?:right|correct|it|me|true|fine|the one)|that works|"
    r"sounds (?:good|great|right|fine)|"
    r"please do|go ahead|go for|let's|book it|(?:i|we)(?:'ll| will)? take|i do|we do|i am|we are|it is|they are|deal|"
    r"agreed|confirm\w*|both|always|the (?:first|second|third|last|former|latter|other)|option \w+|that one|this one|"
    r"ja|jo|joo|jawohl|genau|stimmt|richtig|doch|(?:na |aber )?klar|natürlich|freilich|sicher|gerne?|logisch|passt|"
    r"oui|ouais|exactement|c'est ça|bien sûr|d'accord|évidemment|sí|si|claro|correcto|exacto|vale|por supuesto|obvio|"
    r"obviamente|sim|isso|exato|certo|com certeza|pois|sì|esatto|giusto|certamente|ovviamente|ya|iya|betul|benar|"
    r"setuju|tentu|boleh|klopt|zeker|natuurlijk|jawel|javisst|självklart|selvfølgelig|да|верно|точно|конечно|はい|そうです|"
    r"[是对對好](?:的|啊|呀)?|没错|沒錯|当然|當然|可以|嗯+|نعم|صحيح|evet|tabii|네)"
    r"(?!\w)|👍|👌|✅|✔|💯)"
)
_GESTURE = re.compile(r"[👍👌✅✔💯]")
"""It answers a question. After anything else it says no more than "ok"."""
_NOT_AFTER_ALL = re.compile(
    r"\s+(?:(?:really|definitely|certainly|quite|still|most)\s+)?(?:not|no|nicht|kein\w*|não|pas|tidak|tak|non)\b"
    r"(?!\s+(?:problem|worries|doubt|issue))"
)
"""Right after what looks like a yes: "absolutely not", "ya no"."""
_DENIES = re.compile(
    _OPENING + r"(?:(?:no|nope|nah|never|not|neither|none|wrong|incorrect|i don't|we don't|i'm not|we're not|hardly|"
    r"unlikely|(?:i|we) do not|(?:i am|we are|it is|that is|they are|it's|that's) not|i think not|i doubt|"
    r"(?:(?:absolutely|certainly|definitely|of course|obviously|probably|rather) )not|"
    r"(?:i|we)(?:'d| would) (?:much |really )?rather not|(?:i|we)(?:'ll| will) (?:pass|skip)|don't bother|by no means|"
    r"(?:i am|we are|i'm|we're|i'll be|we'll be|(?:it|that)(?:'s| is))? ?(?:\w+ )?(?:fine|good|ok|okay|happy|better) "
    r"without|without|far from it|"
    r"nein|nee|nie|lieber nicht|eher nicht|nicht|ich (?:glaube|denke) nicht|brauch\w* (?:ich|wir) nicht|"
    r"non|jamais|pas|je ne|nunca|mejor no|prefiero que no|não|acho que não|melhor não|meglio di no|"
    r"tidak|tak|bukan|enggak|gak|saya rasa (?:tidak|tak)|нет|никогда|いいえ|hayır|لا|아니요)"
    r"(?!\w)|不(?!错)|没有|沒有)"
)
_DECLINES_MAYBE = re.compile(
    _OPENING + r"(?:i am|we are|i'm|we're) (?:all |just |quite )?(?:fine|good|ok|okay|set|alright)(?! with\b)(?!\w)"
)
"""A polite no to an offer, and a yes to "are you all right with that?"."""
_TAKES_BACK = re.compile(
    r"\b(?:but|except|actually|not|no longer|instead|wait|aber|sondern|pero|mas|tapi|tetapi|mais)\b"
)
_NEGATES = re.compile(
    r"\b(?:not?|never|none|nothing|without|cannot|\w+n't|dislikes?|avoids?|refuses?|hates?|nicht|kein\w*|nie|ne|pas|"
    r"jamais|nunca|não|tidak|tak|bukan|нет|не)\b|不|没",
    re.IGNORECASE,
)
_ASKS_TO_FORGET = re.compile(
    r"\b(?:forget|delete|remove|erase|scrap|drop|discard|stop (?:remembering|keeping)|don't (?:remember|keep|store)|"
    r"no longer|not any ?more|anymore|take (?:it|that) back|never mind|cancel\w*|instead|wrong|not true|moved|"
    r"chang\w+|switch\w*|now|new|became|turned into|used to|jetzt|ahora|agora|maintenant|sekarang|"
    r"vergiss|lösch\w*|vergessen|oublie\w*|efface\w*|olvid\w*|borr\w*|esque[cç]\w*|apag\w*|dimentica\w*|cancella\w*|lupakan|padam\w*|"
    r"hapus\w*|забудь\w*|удали\w*)\b|忘|删|削除",
    re.IGNORECASE,
)

_ASKS = re.compile(r"[?？؟]\W*$")
_ELLIPSIS = re.compile(r"[\[(]?\.{3,}[\])]?")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*|\n+")
CLAUSE = re.compile(
    r"[,;:–—]\s|\s[-–—]\s|\s(?:but|although|though|while|and|aber|und|pero|mas|tapi|mais|et|y|e|dan)\s|，|；"
)
_OWN_CLAUSE = 6
"""Words before a guess that make up a clause of their own: "I sent it in to see how others might like it"."""
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
DATE = re.compile(
    rf"\d{{4}}-\d\d(?:-\d\d)?(?:T[\d:.]+Z?)?|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\b(?:,? \d{{4}})?|"
    rf"\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?|\b(?:19|20)\d\d\b",
    re.IGNORECASE,
)
_APPROVAL = words_of(
    """it that this these those them they right correct ok okay agreed yes all both book confirm confirmed sound sounds
    work works proceed go ahead reserve good fine suit suits agree note noted save take order then what think how if
    which any should ? richtig stimmt das passt so recht correcto correcta cierto verdad certo correto isso assim giusto
    va bene correct vrai ça convient betul benar klopt goed dat"""
)
"""Words of a question that asks about what was said before it."""
ENGLISH = words_of(
    """the i we my our you and with it that this have please what would for not of to are is how where when your"""
)
_ENGLISH_SHARE = 0.12
LANGUAGES: dict[str, str] = {
    "spanish": "español espanol castellano", "german": "deutsch", "french": "français francais",
    "italian": "italiano", "portuguese": "português portugues", "dutch": "nederlands", "malay": "melayu bahasa",
    "indonesian": "indonesia bahasa", "bahasa": "malay indonesian", "chinese": "中文 汉语 mandarin cantonese",
    "mandarin": "中文 chinese", "japanese": "日本語", "korean": "한국어", "arabic": "العربية", "russian": "русски",
    "turkish": "türkçe", "polish": "polski", "swedish": "svenska", "danish": "dansk", "norwegian": "norsk",
    "english": "inggeris inggris englisch anglais inglés ingles inglês inglese engels",
}  # fmt: skip
"""What a language is called in itself, and next to it."""

_NEAR: dict[str, str] = {
    "vegetarian": "meat veggie daging fleisch carne viande", "vegan": "animal dairy plants plant",
    "halal": "muslim pork", "low": "cheap tight small", "cheap": "low tight", "high": "luxury generous expensive",
    "couple": "wife husband", "family": "kids children", "children": "kids", "kids": "children",
    "eur": "euro euros", "usd": "dollar dollars", "gbp": "pound pounds quid", "myr": "ringgit rm",
    "rm": "ringgit myr", "jpy": "yen",
}  # fmt: skip
"""Words from which a careful person would come to a value. They aren't the same, so a person has a look."""


# ------------------------------------------------------------------------------------------------- reading the turns


def acknowledges(text: str) -> bool:
    """Whether a text says no more than "ok, thanks"."""
    words = re.findall(r"\w+", normalized(text))
    return all(map(_ACKNOWLEDGING.fullmatch, words)) and not _GESTURE.search(text)


def heard(turns: Iterable[Turn]) -> list[Turn]:
    """The user's turns that say anything."""
    return [turn for turn in turns if turn.role == "user" and not acknowledges(turn.text)]


def holds(turn: Turn, quote: str) -> bool:
    """Whether a quote stands in a turn, however its white space, case, quotes and dashes are typed.

    What an ellipsis leaves out may be anything; the parts around it follow each other in the turn.
    """
    said = _comparable(turn.text)
    if (wanted := _comparable(quote)) in said:
        return bool(wanted)
    at = 0
    for part in (parts := _quoted_parts(quote)):
        found = said.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return bool(parts)


def answered(turn: Turn, window: Sequence[Turn]) -> Turn | None:
    """What a user's turn confirms: the assistant's turn right before it, where it says yes to it.

    A yes answers what was asked: where the turn asks something of its own, the rest of it is no part of what is
    confirmed ("You love opera, so I got tickets. Do you need a cot?").
    """
    before = _before(turn, window)
    if before is None or not _is_yes(turn.text):
        return None
    if _GESTURE.search(turn.text) and not _questions(before.text):
        return None
    return _asked(before)


def confirmed(text: str, turn: Turn, window: Sequence[Turn]) -> Turn | None:
    """What a user's turn confirms of the assistant's: by a yes, and of what `text` says isn't so by a no."""
    return answered(turn, window) or (denied(turn, window) if _NEGATES.search(text) else None)


def asks_to_forget(turns: Iterable[Turn]) -> bool:
    """Whether one of the user's turns takes something back or asks to forget."""
    return any(turn.role == "user" and _ASKS_TO_FORGET.search(turn.text) for turn in turns)


def speaks_of(text: str, turns: Iterable[Turn]) -> bool:
    """Whether one of the user's turns has a word or number of a statement."""
    return bool(parts(text).found_in([turn.text for turn in turns if turn.role == "user"]))


def speaks_of_same(one: str, other: str) -> bool:
    """Whether two statements have a word or number that carries meaning in common, or the one that has none."""
    words = parts(one)
    return not words or bool(words.found_in([other]))


def is_hedged(sentence: str) -> bool:
    """Whether a sentence guesses or imagines rather than says."""
    return bool(_HEDGE.search(sentence) or _IMAGINED.search(sentence))


def sentences(text: str) -> list[str]:
    """The sentences of a text; all of it where it has none."""
    return [part for part in _SENTENCE.split(text) if part and part.strip()] or [text]


def _before(turn: Turn, window: Sequence[Turn]) -> Turn | None:
    """The assistant's turn that a user's turn comes right after; what tools and the system said stands between."""
    place = next((number for number, each in enumerate(window) if each.id == turn.id), 0)
    for each in reversed(window[:place]):
        if each.role == "assistant":
            return each
        if each.role == "user":
            return None
    return None


def denied(turn: Turn, window: Sequence[Turn]) -> Turn | None:
    """What a user's turn says no to."""
    before = _before(turn, window)
    return _asked(before) if before is not None and _DENIES.match(typed(turn.text)) else None


def _is_yes(text: str) -> bool:
    said = typed(text)
    if is_hedged(text) or _DENIES.match(said) or _DECLINES_MAYBE.match(said):
        return False
    found = _AFFIRMS.match(said)
    return found is not None and not _NOT_AFTER_ALL.match(said, found.end())


def _questions(text: str) -> list[str]:
    """The last questions of a text that stand together."""
    said = [each.strip() for each in sentences(text)]
    last = next((n for n in reversed(range(len(said))) if _ASKS.search(said[n])), -1)
    first = last
    while first > 0 and _ASKS.search(said[first - 1]):
        first -= 1
    return said[max(first, 0) : last + 1]


def _asked(turn: Turn) -> Turn:
    """What of an assistant's turn an answer is about: its question, or all of it where the question points back."""
    asked = " ".join(_questions(turn.text))
    return replace(turn, text=asked) if parts(asked).words - _APPROVAL else turn


def heard_back(own: Sequence[Turn], window: Sequence[Turn]) -> list[Turn]:
    """How the assistant took some of the user's turns: what it said next, unless the user said no to that."""
    cited = {turn.id for turn in own}
    found: list[Turn] = []
    open_ = False
    for number, turn in enumerate(window):
        if turn.role == "user":
            follows_user = number > 0 and window[number - 1].role == "user"
            open_ = turn.id in cited or (open_ and follows_user)
            if found and not follows_user and _DENIES.match(typed(turn.text)):
                found = [each for each in found if each is not _before(turn, window)]
        elif turn.role == "assistant" and open_:
            found.append(turn)
    return found


def typed(text: str) -> str:
    """Typographic quotes and dashes as typed ones."""
    plain = normalized(text).translate({ord(char): "'" for char in "‘’‚‛`´"} | {ord(char): '"' for char in "“”„«»"})
    return re.sub("[‐-―]", "-", plain)


def _quoted_parts(quote: str) -> list[str]:
    """What of a quote is quoted: all of it, or what stands around its ellipses."""
    return [part for each in _ELLIPSIS.split(typed(quote)) if (part := _comparable(each))]


def _comparable(text: str) -> str:
    return typed(text).strip(" .,;:!?…\"'")


# ------------------------------------------------------------------------------------------------------- statements


def of_statement(
    text: str, *, cited: Sequence[Turn], window: Sequence[Turn], known: Sequence[str] = (), quoted: bool = False
) -> Finding:
    """What the turns say of a statement that cites some of them.

    `known`: statements that it changes or replaces; their words need no evidence again. `quoted`: whether a quote of
    the user's is given for it, so that a statement in other words has been borne out by a person's own.
    """
    return _of_statement(text, tuple(cited), tuple(window), tuple(known), quoted)


@lru_cache(maxsize=64)  # a rule that rejects and one that holds ask the same
def _of_statement(
    text: str, cited: tuple[Turn, ...], window: tuple[Turn, ...], known: tuple[str, ...], quoted: bool
) -> Finding:
    wanted = parts(DATE.sub(" ", text)).without(known)
    if not wanted:
        return "borne_out"
    own = [turn for turn in cited if turn.role == "user"]
    agreed = [each for turn in own if (each := confirmed(text, turn, window)) is not None]
    said = [turn.text for turn in (*own, *agreed)]
    missing = wanted.missing_in(said)
    said_somewhere = missing.missing_in([turn.text for turn in window if turn.role == "user"])
    elsewhere = said_somewhere.found_in([turn.text for turn in window if turn.role != "user"])
    if elsewhere.exact or 2 * len(elsewhere) > len(wanted):
        return _of_others(elsewhere, own, agreed, window, quoted)
    if len(missing) < len(wanted) or agreed or quoted:
        return "borne_out"
    if not elsewhere or 2 * len(elsewhere) < len(wanted):
        return "unsupported"
    return "unsupported" if elsewhere.found_in(_texts(heard_back(own, window))) else "said_by_others"


def _of_others(
    words: Parts, own: Sequence[Turn], agreed: Sequence[Turn], window: Sequence[Turn], quoted: bool
) -> Finding:
    """What to say of words that the user didn't use and somebody else did.

    "I eat no meat." "Got it, vegetarian.": an assistant that puts in its own words what it has just been told takes
    nothing away from it. Where it said so first, or looked it up, the user's words may be about anything.
    """
    back = heard_back(own, window)
    others = [turn for turn in window if turn.role != "user" and turn not in back]
    is_echo = bool(words.words) and not words.missing_in(_texts(back)) and not words.found_in(_texts(others)).words
    is_told = any(not _ASKS.search(each) for turn in own for each in sentences(turn.text))
    if is_echo and quoted and is_told and not words.exact:
        return "borne_out"
    half_agreed = [turn for turn in window if any(turn.id == each.id and turn != each for each in agreed)]
    is_unsure = is_echo or quoted or bool(words.found_in(_texts(half_agreed))) or not (words.exact or is_english(own))
    return "unsupported" if is_unsure else "said_by_others"


def _texts(turns: Iterable[Turn]) -> list[str]:
    return [turn.text for turn in turns]


def is_speculation(text: str, *, cited: Sequence[Turn], quote: str | None) -> bool:
    """Whether a statement is put as if it were settled, from nothing but "maybe" and "what if".

    `quote`: where one is given, only the sentences that it stands in count.
    """
    if _STILL_OPEN.search(text):
        return False
    said = [sentence for turn in cited if turn.role == "user" for sentence in _with_quote(quote, turn)]
    told = [_told_apart(sentence) for sentence in said]
    settled, guessed = ([each for pair in told for each in pair[number]] for number in (0, 1))
    if not settled or not guessed:
        return bool(guessed)
    words = parts(text)
    return bool(words.found_in(guessed)) and not words.found_in(settled)


def _with_quote(quote: str | None, turn: Turn) -> list[str]:
    """The sentences of a turn that a quote stands in; all where it is in none, or there is none."""
    wanted, there = _quoted_parts(quote or ""), sentences(turn.text)
    return [each for each in there if any(part in _comparable(each) for part in wanted)] or there


# ----------------------------------------------------------------------------------------------------------- values


def of_value(path: Sequence[str], value: str, window: Sequence[Turn]) -> Finding:
    """What a window says of a profile's value. All of the user's turns count.

    Life cycle, locale and language may be told by how somebody writes and what they ask for; where the user writes
    plain English, another language has to be named.
    """
    said = heard(window)
    if not said:
        return "said_by_others" if any(turn.role != "user" for turn in window) else "not_said"
    if path[0] == "preferred_language":
        return _of_language(value, said, window)
    if path[0] == "locale":
        return _of_locale(value, window)
    return _of_attribute(path[-1], value, said, window) if path[0] == "attributes" else "borne_out"


def _of_attribute(key: str, value: str, said: Sequence[Turn], window: Sequence[Turn]) -> Finding:
    words = parts(value)
    settled, guessed = _settled(said, window)
    if not words:  # yes, no, none: whether the thing itself was spoken of
        return "borne_out" if len(parts(key).found_in(settled)) else "unsupported"
    missing = words.missing_in(settled)
    found = len(words) - len(missing)
    if not missing:
        return "unsupported" if _is_denied(value, settled) else "borne_out"
    others = missing.found_in([turn.text for turn in window if turn.role != "user"])
    imagined = missing.found_in(guessed)
    if imagined.exact or others.exact:
        return "speculation" if imagined.exact else "said_by_others"
    if found:
        told = not missing.numbers and not others and not imagined and (bool(words.numbers) or 2 * found >= len(words))
        return "borne_out" if told else "unsupported"
    if imagined:
        return "speculation"
    if others:
        return "said_by_others"
    near = parts(" ".join([*(_NEAR.get(word, "") for word in words.words), *([] if words.numbers else [key])]))
    is_counted = bool(words.numbers) and not words.exact
    return "unsupported" if near.found_in(settled) or is_counted or not is_english(said) else "not_said"


def _of_language(value: str, said: Sequence[Turn], window: Sequence[Turn]) -> Finding:
    if not is_english(said) or normalized(value).startswith(("en", "english")):
        return "borne_out"
    names = parts(" ".join([value, *(LANGUAGES.get(word, "") for word in normalized(value).split())]))
    settled, guessed = _settled(said, window)
    if names.found_in(settled):
        return "borne_out"
    if names.found_in(guessed):
        return "speculation"
    others = names.found_in([turn.text for turn in window if turn.role != "user"])
    return "said_by_others" if others else "unsupported"


def _of_locale(value: str, window: Sequence[Turn]) -> Finding:
    parts = "[-_]".join(map(re.escape, re.split("[-_]", value)))
    written = re.compile(rf"(?<![^\W_]){parts}(?![^\W_])", re.IGNORECASE)
    roles = {turn.role for turn in window if len(value) > 2 and written.search(turn.text)}
    return "said_by_others" if roles and "user" not in roles else "borne_out"


def _settled(said: Sequence[Turn], window: Sequence[Turn]) -> tuple[list[str], list[str]]:
    """What the user says, and what they confirm; and what they only guess or imagine."""
    settled: list[str] = []
    guessed: list[str] = []
    for turn in said:
        for sentence in sentences(turn.text):
            plain, open_ = _told_apart(sentence)
            settled += plain
            guessed += open_
        asked = answered(turn, window)
        if asked is not None and not _TAKES_BACK.search(typed(turn.text)):
            settled += [each for each in sentences(asked.text) if not re.search(r"\bor\b", each)]
    return settled, guessed


def _told_apart(sentence: str) -> tuple[list[str], list[str]]:
    """What of a sentence is said, and what is guessed. What is imagined is so from the start to the end.

    "I live in Penang, maybe I'll move": a guess reaches to the end of its sentence, and not to the clause before it.
    """
    if _IMAGINED.search(sentence):
        return [], [sentence]
    hedge = _HEDGE.search(sentence)
    if hedge is None:
        return [sentence], []
    before = [found.end() for found in CLAUSE.finditer(sentence, 0, hedge.start())]
    start = before[-1] if before else hedge.start() if len(sentence[: hedge.start()].split()) >= _OWN_CLAUSE else 0
    return ([sentence[:start]] if start else []), [sentence[start:]]


def _is_denied(value: str, settled: Sequence[str]) -> bool:
    """Whether the value stands only behind a "not": "I'm not a vegetarian"."""
    denied = re.compile(
        rf"\b(?:not|n't|no longer|never)\s+(?:an?\s+|the\s+|in\s+|from\s+|really\s+)*{re.escape(typed(value))}"
    )
    plain = [typed(text) for text in settled]
    holding = [text for text in plain if typed(value) in text]
    return bool(holding) and all(denied.search(text) for text in holding)


def is_english(turns: Sequence[Turn]) -> bool:
    """Whether the turns are plainly English, so that words of English can be looked for in them."""
    words = [word for turn in turns for word in re.findall(r"[^\W\d_]+", normalized(turn.text))]
    return bool(words) and sum(word in ENGLISH for word in words) >= _ENGLISH_SHARE * len(words)
