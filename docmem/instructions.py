"""Tell a statement about a person from an instruction to the assistant that would be stored as one.

What is remembered comes back in every later prompt, so a planted order would be obeyed for ever. A wish about the
form or content of answers is a preference; one about approvals, permissions, payments, tools or other people is
a matter for a person. A sentence that merely mentions prompts or rules is neither.
"""

from __future__ import annotations

import re
import unicodedata

_LEVERS = r"""approv\w*|authori[sz]\w*|permission\w*|permit\w*|grant\w*|whitelist\w*|allowlist\w*|unlock\w*|escalat\w*|
    pay|pays|paid|paying|payment\w*|payout\w*|refund\w*|reimburs\w*|transfer\w*|wire|charge\w*|invoice\w*|deduct\w*|
    discount\w*|credit\w*|purchas\w*|buy|order|orders|waive\w*|
    tool|tools|function|functions|command|commands|execute\w*|run|runs|script\w*|shell|sql|api|browse\w*|webhook\w*|
    delete\w*|erase\w*|wipe\w*|drop|deploy\w*|forward\w*|upload\w*|exfiltrat\w*|reveal\w*|disclos\w*|leak\w*|
    share|bypass\w*|skip|override\w*|disable\w*|verif\w*|confirm\w*|trust\w*|obey\w*|comply|compl(?:y|ies)|
    other\s+(?:users?|customers?|clients?|people|guests?|accounts?|travell?ers?)|everyone|everybody|
    all\s+(?:users?|customers?|clients?|guests?|accounts?|requests?)|any(?:one|body)|admin\w*|root|superuser"""
_FLAGS = re.IGNORECASE | re.VERBOSE

_PATTERNS: tuple[re.Pattern[str], ...] = tuple(
    re.compile(pattern, _FLAGS)
    for pattern in (
        # Taking earlier instructions back, in some languages.
        r"""\b(?:ignore|disregard|forget|override|overrule|bypass|neglect|drop)\b[^.!?\n]{0,40}
            \b(?:previous|prior|above|earlier|preceding|all|any|your|the|these|those|system|every)\b[^.!?\n]{0,30}
            \b(?:instructions?|prompts?|rules?|directions?|directives?|guidelines?|messages?|polic(?:y|ies)|
            guardrails?|restrictions?|context|constraints?)\b""",
        r"\b(?:ignoriere|vergiss|missachte)\b[^.!?\n]{0,40}\b(?:anweisung\w*|regeln|vorgaben|befehle)",
        r"\bignore[zr]?\b[^.!?\n]{0,40}\b(?:instructions?|consignes?|règles)",
        r"\b(?:ignora|olvida|omite|desatiende)\b[^.!?\n]{0,40}\b(?:instrucciones|reglas|órdenes|istruzioni|regole)",
        r"\b(?:ignore|esqueça)\b[^.!?\n]{0,40}\b(?:instruções|regras)",
        r"\b(?:abaikan|lupakan)\b[^.!?\n]{0,40}\b(?:arahan|perintah|instruksi|peraturan|aturan)",
        r"игнорируй\w*|забудь\s+(?:все|предыдущ)\w*",
        r"忽略.{0,12}(?:指令|指示|规则|提示|說明|说明)|無視.{0,12}(?:指示|命令)|(?:指示|命令).{0,6}無視",
        r"تجاهل.{0,24}(?:التعليمات|الأوامر|القواعد)",
        # Role markers, chat templates, tool calls.
        r"(?:^|\n)\s*(?:\#+\s*)?(?:system|assistant|developer|tool|human|user)\s*(?:message|prompt|note)?\s*:\s*\S",
        r"(?:^|\n)\s*\#{1,6}\s*(?:system|instructions?|new\s+instructions?)\b",
        r"<\|[^|>\n]{1,40}\|>|\[/?INST\]|<</?SYS>>|<(?:/)?(?:s|start_of_turn|end_of_turn)>",
        r"</?\s*(?:system|assistant|user|developer|instructions?|tool_?call\w*|tool_?result\w*|function_?calls?|"
        r"invoke|antml:\w+|dialogue|memories|memory|profile|docmem[\s:._-]*memory)\b[^>\n]*>",
        r"\"(?:tool_calls?|function_call|tool_use|tool_name)\"\s*:|\"name\"\s*:\s*\"[^\"]+\"\s*,\s*\"(?:arguments|"
        r"parameters|input)\"\s*:",
        # A new role for the assistant, or secrecy from the people it works for.
        r"\byou\s+are\s+(?:now|no\s+longer)\b|\bact\s+as\s+(?:if\s+you|an?\s+(?:un|admin|root|system|developer))",
        r"\bpretend\s+(?:to\s+be|that\s+you|you)\b|\b(?:developer|debug|god|dan|jailbreak|maintenance)\s+mode\b",
        r"""\b(?:do\s+not|don't|never)\s+(?:tell|inform|mention\s+(?:this|it)|reveal|alert|warn|notify|ask|log|report)\b
            [^.!?\n]{0,40}\b(?:user|customer|admin\w*|staff|anyone|operator|human|owner|about\s+this|confirm\w*)\b""",
        r"\b(?:print|reveal|show|repeat|output|send|leak|dump)\b[^.!?\n]{0,30}\b(?:system\s+prompt|api\s+keys?|"
        r"credentials|secrets|passwords?|hidden\s+instructions?|environment\s+variables)\b",
        r"\bnew\s+(?:system\s+)?(?:instructions?|polic(?:y|ies)|rules?)\s*(?::|is\b|are\b|from\b)",
        # Standing orders about what only people decide.
        rf"""\b(?:always|never|automatically|from\s+now\s+on|henceforth|whenever|without\s+(?:asking|checking|
            confirm\w*|approval|verif\w*|limits?)|must|shall|should|has\s+to|have\s+to|do\s+not|don't|you\s+(?:may|can|
            are\s+allowed)|is\s+(?:allowed|entitled|authori[sz]ed|permitted|approved)\s+to|
            (?:assistant|agent|bot|model|system|ai)\s+(?:may|can|will|must|should|has|is))\b
            [^.!?\n]{{0,60}}?\b(?:{_LEVERS})\b""",
        r"(?:^|[.!?\n]\s*)(?:please\s+)?(?:approve|authori[sz]e|grant|refund|transfer|wire|execute|run|delete|erase|"
        r"wipe|disable|bypass|escalate|obey|trust)\s+(?:all|every|any|the|this|my|[$€£]?\d+|everything|anything|it|me)\b",
        r"\b(?:pre-?approved|auto-?approved?|has\s+admin\w*|(?:has|have|with)\s+(?:full|unlimited|root|admin\w*)\s+"
        r"(?:access|rights|permissions?|privileges)|is\s+(?:an?\s+)?(?:the\s+)?(?:system\s+)?(?:admin(?:istrator)?(?!\s+assistant)|superuser|"
        r"developer\s+of\s+(?:this|the)\s+\w+))\b",
        r"\bfreigeb\w*\s+ohne|\bimmer\b[^.!?\n]{0,40}\b(?:genehmig\w*|freigeb\w*|überweis\w*|bezahl\w*|erstatt\w*)",
        r"\b(?:siempre|nunca)\b[^.!?\n]{0,40}\b(?:aprueb\w*|aprobar|autoriz\w*|reembols\w*|transfi\w*|pag(?:a|ar|ue))\b",
        r"\btoujours\b[^.!?\n]{0,40}\b(?:approuve\w*|autorise\w*|rembourse\w*|payer|paie)\b",
        r"\b(?:selalu|sentiasa)\b[^.!?\n]{0,40}\b(?:setuju\w*|lulus\w*|bayar\w*|transfer\w*|luluskan)\b",
    )
)  # fmt: skip
# A form of answering is the user's own affair: language, tone, length, layout, units, names.
_ANSWERING = re.compile(
    r"""\b(?:answer|answers|answered|answering|reply|replies|replied|respond\w*|response\w*|write|written|speak|spoken|
        address\w*|greet\w*|call|explain\w*|summari[sz]e\w*|format\w*|translat\w*|language|tone|bullet\w*|units?|
        emoji\w*|concise\w*|brief\w*|short|formal\w*|tables?|list|lists|sources?|quote|prices?|currency)\b""",
    _FLAGS,
)
# What the person does or has to do is a fact about them, as long as nobody else's decision is in it.
_ABOUT_THE_PERSON = re.compile(
    r"""^(?:the\s+)?(?:user|traveller|traveler|customer|client|guest|person|they|he|she|i)(?:'s\s+\w+)?\s+(?:also\s+)?
        (?:always|never|must|shall|should|has\s+to|have\s+to)\b""",
    _FLAGS,
)
_ORDER_ABOUT_ANSWERS = re.compile(
    rf"\b(?:always|never|please|should|must|prefers?|wants?)\b.*{_ANSWERING.pattern}", _FLAGS
)
_HARD_LEVERS = re.compile(
    r"""\b(?:approv\w*|authori[sz]\w*|permission\w*|grant\w*|refund\w*|transfer\w*|payment\w*|charge\w*|invoice\w*|
        discount\w*|credit\w*|waive\w*|tools?|functions?|commands?|execute\w*|scripts?|shell|sql|delete\w*|wipe\w*|bypass\w*|override\w*|disable\w*|
        admin\w*|other\s+(?:users?|customers?|clients?|guests?|accounts?|travell?ers?)|everyone|everybody|anyone|
        all\s+(?:users?|customers?|clients?|accounts?|requests?)|password\w*|secrets?|credentials|system\s+prompt)\b""",
    _FLAGS,
)


def is_instruction(text: str) -> bool:
    """Whether a statement orders the assistant about beyond the form and content of its answers."""
    plain = _plain(text)
    found = [number for number, pattern in enumerate(_PATTERNS) if pattern.search(plain)]
    if found == [_STANDING_ORDER] and not _HARD_LEVERS.search(plain):
        return not (_ORDER_ABOUT_ANSWERS.search(plain) or _ABOUT_THE_PERSON.search(plain))
    return bool(found)


_STANDING_ORDER = next(number for number, pattern in enumerate(_PATTERNS) if "henceforth" in pattern.pattern)


def _plain(text: str) -> str:
    """NFKC without invisible characters, so that spelling tricks don't hide an order."""
    folded = unicodedata.normalize("NFKC", text).replace("’", "'")
    return "".join(char for char in folded if unicodedata.category(char) != "Cf")
