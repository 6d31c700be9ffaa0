"""Passwords and codes in sentences, in the many ways people write them: "pw X", "Login: ana / X", "the pass is X".

What is said about a password ("the password is expired") is none. After a colon nearly anything is one; after a bare
"is" only what looks like no ordinary word, or stands alone at the end, or in quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_AS_TYPED = str.maketrans(
    {chr(0xFF01 + at): chr(0x21 + at) for at in range(94)}
    | {"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "\u00a0": " ", "\u3000": " ", "→": ">"}
)
"""One character for one, so that places stay."""

_WORD = r"""(?:pass[\ -]?words?|passwd|pass[\ -]?phrase|pass[\ -]?code|pwd|pswd|pw|secret(?:\ key)?|secret\ access\ key|
    api[\ _-]?key|access[\ _-]?(?:key|token)|auth[\ _-]?token|kata\ ?(?:sandi|laluan)|contraseña|contrasenya|passwort|
    kennwort|mot\ de\ passe|mdp|senha|palavra[\ -]passe|password[ei]?|wachtwoord|lösenord|adgangskode|passord|salasana|
    hasło|пароль|parola|şifre|heslo|jelszó|(?:wi-?fi|wlan|wireless|hotspot|router|network)[\ -]*(?:key|code|schlüssel|
    pass|clave|chave|kunci))"""
_SAID = r"""\s+(?:is|was|are|ist|war|lautet|heißt|est|es|é|è|era|adalah|ialah|será|sera|jest|to|
    (?:will|should|must|can)\s+be)
    (?:\s+(?:now|jetzt|agora|ahora|still|simply|just))?\s*:?\s+"""
_SIGN = r"""['"]?\s*(?:=>|->|>|=|:)\s*"""
_VALUE = r"""(?:"(?P<quoted>[^"\n]{3,80})"|'(?P<single>[^'\n]{3,80})'(?!\w)|['"]?(?P<value>[^\s'"]{3,200}))"""


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | re.VERBOSE)


_PASSWORD = _pattern(
    rf"""(?<![\w-])(?P<what>{_WORD})(?:\s*\([^()\n]{{0,30}}\))?
    (?P<link>{_SIGN}|(?:\s+\w+){{0,4}}?(?:{_SAID}|\s*(?:=|:)\s*)|'s\s+|
        \s+(?:(?:changed|set|reset|updated)\s+)?to\s+|\s+[-–—]\s+|\s+(?:saya|e|eh|my|mi|of)\s+|\s+)
    {_VALUE}"""
)
_PASS = _pattern(
    rf"""(?<!boarding\s)(?<!bus\s)(?<!rail\s)(?<!train\s)(?<!ski\s)(?<!season\s)(?<!day\s)(?<!museum\s)(?<!city\s)(?<!lounge\s)
    (?<!mountain\s)(?<!press\s)(?<!visitor\s)(?<!parking\s)(?<!annual\s)(?<!tourist\s)(?<!travel\s)(?<![\w-])
    (?P<what>pass|clave|logins?)(?P<link>{_SIGN}|\s+(?:is|was|es|é|ist)\s+:?\s*|\s+){_VALUE}"""
)
_PAIR = _pattern(
    r"""(?<![\w-])(?:log[\s-]?in(?:s|\s+details)?|sign-?in|user(?:name|\s+name|\s+id)?|credentials?|creds|account\s+login|anmeldung|
        zugang(?:sdaten)?|benutzer(?:name)?|usu[aá]rio|acesso|utilisateur|identifiant|wi-?fi|wlan|ssid|pengguna|admin)
    (?:\s*(?:=|:)\s*|\s+(?:is|ist|é|es|est|ialah)\s+|\s+(?:as|with)\s+|(?<=login)\s+|(?<=creds)\s+)(?:the\s+user\s+)?
    (?P<name>[^\s/|,;]{1,64})(?:\s*(?:/|\||,|;|\n|:)\s*|\s+(?:and|und|e|y|et|dan|with|mit|using|-|–)\s+|\s+)
    (?P<value>[^\s'"]{5,200})"""
)
_REVERSED = _pattern(
    rf"""(?<!\S)["']?(?P<value>[^\s'"]{{5,64}})["']?\s+(?:is|ist|é|est|es|ialah|adalah|as|als|como|comme)\s+
    (?:my|mein|minha|mon|mi|the|his|her|their|our|your|a|o|de)\s+(?:\w+\s+)?(?:{_WORD}|pin)\b"""
)
_NUMBER = r"(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)"
_CODE = _pattern(
    rf"""\b(?:pin(?:[\ -]?(?:code|number|no\.?|nr\.?|nummer))?|pass[\ -]?code|cvv2?|cvc|otp|puk|m?tan|
        (?:lock|safe|locker|luggage)\ combination|combination\ (?:of|for|to)|
        (?:verification|security|one-time|access|door|gate|alarm|login|confirmation|otp|2fa|safe|lock|entry|building|garage|
        unlock|screen|phone|sim)[\ -](?:code|pin|password|combination))
    (?!\w)(?:\s+(?:of|for|to|on)(?:\s+\w+){{1,4}}?)?
    (?:['"]?\s*(?:=|:|>)\s*|'s\s+|{_SAID}|\s+)['"]?
    (?P<value>\d(?:[\ .-]?\d){{2,7}}|{_NUMBER}(?:[\s,-]+{_NUMBER}){{3,7}})(?![\w-])
    (?!\s*(?:in\b|area|district|%|euros?|dollars?|people|guests|nights))"""
)
_UNLOCK = _pattern(
    r"\bunlock\w*\s+(?:\w+\s+){0,4}?(?:with|by|using)\s+(?:the\s+)?(?:code\s+|pin\s+)?(?P<value>\d{4,8})\b"
)
_CODE_WORD = _pattern(
    rf"""\b(?:code[\ -]?word|safe[\ -]?word|secret\ word|memorable\ word|security\ answer|
        answer\ to\ the\ security\ question)
    (?:\s+\w+){{0,3}}?\s*(?:=|:|\s(?:is|was)\s)\s*{_VALUE}"""
)
_ASIAN = re.compile(
    r"(?:密码|密碼|口令|暗证番号|暗証番号|パスワード|비밀번호|암호)[^\s!-~]{0,4}?\s*(?:是|为|為|は|는|은|就是|:|=)?\s*(?P<value>[A-Za-z0-9][!-~]{3,})"
)
_ARABIC = re.compile(
    r"(?:كلمة\s+(?:المرور|السر|سر|مرور)\w*|كلمة\s+مروري|الرقم\s+السري|رمز\s+الدخول)(?:\s+\w+){0,2}?\s*(?:هي|هو|:|=)?\s*(?P<value>\S{4,})"
)
_COMMAND = _pattern(
    r"""\b(?:mysql\w*|mariadb|sshpass)\b[^\n]{0,120}?\s-p\s?(?P<value>[^\s-]\S{3,})|
        \bcurl\b[^\n]{0,120}?\s(?:-u|--user)\s+[^\s:]{1,64}:(?P<user>\S+)"""
)
_ADDRESS = _pattern(
    r"(?<![\w:/])(?!mailto|xmpp|sips?|email)[\w.-]{1,40}:(?P<value>[^\s@:/]{5,64})@[\w-]{1,63}(?:\.[\w-]{1,63}){0,5}(?::\d{2,5}\b|/\w)"
)
_NOT_A_VALUE = re.compile(
    r"""(?ix)the|an?|not|no|in|on|at|for|to|too|very|that|this|what|his|her|their|my|your|our|mine|theirs|yours|only|also|
    always|never|still|just|so|and|or|but|as|by|from|with|without|here|there|under|inside|required|needed|forgotten|lost|
    unknown|important|expired|wrong|right|weak|strong|(?:in)?secure|safe|(?:in)?correct|(?:in)?valid|empty|missing|
    (?:case-)?sensitive|temporary|optional|mandatory|private|secret|public|hidden|stored|kept|sent|printed|written|saved|
    shared|known|long|short|hard|easy|old|new|changed|reset|set|working|broken|protected|protection|manager|policy|field|
    prompt|hint|abgelaufen|zu|vergessen|falsch|richtig|obligatori[oa]|obligatoire|olvidada|oublié|fácil|difícil|errada|
    vencida|salah|lupa|tamat|n/a|none|tba|tbd|pending|updated|managed|included|same|be|been|being|is|was|has|page|screen"""
)
"""What is said about a password, as against what it is."""
_SMALL = frozenset(
    word
    for line in (
        "the a an and or of to in on at for is was be by with from as it that this every each my his her their our",
        "your when while if after before since until again today now yet down up out off back there here not will can",
        "has",
        "und der die das ist zu mit für auf seit bei nach um nicht e o de da do le la les et y el para por que con com",
        "em en pour depuis dans ne pas no não é es est yang dan untuk dengan di pada dari ialah adalah sudah tidak",
    )
    for word in line.split()
)
_MORE = re.compile(r"(?:[ ]+[a-z0-9äöüßéèáàíóúñç]+){1,7}(?=\s*(?:$|[.,;!?\n]))")
_MEASURE = re.compile(
    r"\d+(?:[.,]\d+)?(?:[a-zµ°]{1,3}|[-/]?(?:day|month|year|week|hour)s?)|\d+(?:st|nd|rd|th)|(?-i:[A-Z]{1,3}\d{2,4})",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a password or code stands in a text. `name` is `password` or `code`."""

    name: str
    start: int
    end: int


def found(text: str) -> Iterator[Spot]:
    """The passwords and codes in a text."""
    plain = text.translate(_AS_TYPED)
    for pattern in (_PASSWORD, _PASS):
        yield from _spots("password", pattern, plain, _is_password)
    for pattern in (_PAIR, _REVERSED, _ARABIC, _ADDRESS):
        yield from _spots("password", pattern, plain, _is_strange_value)
    for pattern in (_ASIAN, _COMMAND, _CODE_WORD):
        yield from _spots("password", pattern, plain, lambda match: not _NOT_A_VALUE.fullmatch(_value(match)))
    for pattern in (_CODE, _UNLOCK):
        yield from _spots("code", pattern, plain, lambda match: True)


def _spots(name: str, pattern: re.Pattern[str], text: str, counts: Callable[[re.Match[str]], bool]) -> Iterator[Spot]:
    at = 0
    while match := pattern.search(text, at):
        start, end = match.span(_group(match))
        if not text.startswith("[removed", start) and counts(match):
            more = _MORE.match(text, end) if name == "password" and _is_phrase(match) else None
            yield Spot(name, start, more.end() if more else end)
            at = end
        else:
            at = max(match.start() + 1, start)


def _group(match: re.Match[str]) -> str:
    return next(name for name in ("value", "quoted", "single", "user") if match.groupdict().get(name) is not None)


def _value(match: re.Match[str]) -> str:
    return match[_group(match)].rstrip(".,;!?)")


def _is_strange_value(match: re.Match[str]) -> bool:
    return _is_strange(_value(match)) and not _MEASURE.fullmatch(_value(match))


def _is_strange(value: str) -> bool:
    """Whether it can't be an ordinary word: letters with digits or signs among them, or capitals within."""
    letters = any(map(str.isalpha, value))
    return letters and (any(map(str.isdigit, value)) or any(char in "!#$%^&*+=?@~" for char in value[:-1]))


def _is_password(match: re.Match[str]) -> bool:
    """Whether what follows "the password is" can be one: after a colon anything, else nothing like an ordinary word."""
    value, link, what = _value(match), match["link"], match["what"].casefold()
    if len(value) < 3 or value.startswith(("[", "http")):
        return False
    if _is_phrase(match):
        return True
    if _NOT_A_VALUE.fullmatch(value):
        return False
    if _group(match) != "value":
        return True
    is_weak = what in {"pass", "clave", "login", "logins", "secret"}
    if ("=" in link or ":" in link or ">" in link) and not is_weak:
        return True
    if is_weak and _MEASURE.fullmatch(value):
        return False
    strange = (not value.isalpha() and any(map(str.isdigit, value))) or value[1:] != value[1:].lower()
    if not re.search(
        r"[=:>]|'s|\b(?:is|was|are|ist|war|lautet|heißt|est|es|é|è|era|adalah|ialah|será|sera|jest|be)\b", link
    ):
        return strange and len(value) >= 6 and not value.isdigit() and not _MEASURE.fullmatch(value)
    rest = match.string[match.end() :].partition("\n")[0]
    ends = not rest.strip(" .,;!?\"'")
    return _is_strange(value) if is_weak else strange or ends


def _is_phrase(match: re.Match[str]) -> bool:
    """Whether a pass phrase follows: three plain words or more to the end of the part, none of them a small one."""
    if (
        _group(match) != "value"
        or "link" not in match.groupdict()
        or not re.search(r"[=:>]|\b(?:is|ist|é|est|es)\b", match["link"])
    ):
        return False
    more = _MORE.match(match.string, match.end())
    words = [match["value"], *more[0].split()] if more else []
    if len(words) < 3 or match["what"].casefold() in {"pass", "login", "logins", "clave", "secret"}:
        return False
    said = sum(bool(_NOT_A_VALUE.fullmatch(word)) for word in words)
    return said <= (len(words) > 3) and not any(word in _SMALL or word.endswith("ly") for word in words)
