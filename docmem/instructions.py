"""Tell a statement about a person from an instruction to the assistant that would be stored as one.

What is remembered comes back in every later prompt, so a planted order would be obeyed for ever. A wish about the
form or content of answers is a preference; one about approvals, permissions, payments, tools or other people is
a matter for a person. A sentence that merely mentions prompts or rules is neither.
"""

from __future__ import annotations

import base64
import codecs
import contextlib
import re
import unicodedata
from collections.abc import Iterator

from docmem.powers import gives_power, without_harmless_phrases

_LEVERS = r"""approv\w*|authori[sz]\w*|permission\w*|permit\w*|grant\w*|whitelist\w*|allowlist\w*|unlock\w*|escalat\w*|
    pay|pays|paid|paying|payment\w*|payout\w*|refund\w*|reimburs\w*|transfer\w*|wire|charge\w*|invoice\w*|deduct\w*|
    discount\w*|credit\w*|purchas\w*|buy|order|orders|waive\w*|
    tool|tools|function|functions|command|commands|execute\w*|run|runs|script\w*|shell|sql|api|browse\w*|webhook\w*|
    delete\w*|erase\w*|wipe\w*|drop|deploy\w*|forward\w*|upload\w*|exfiltrat\w*|reveal\w*|disclos\w*|leak\w*|
    share|bypass\w*|skip|override\w*|disable\w*|verif\w*|confirm\w*|trust\w*|obey\w*|comply|compl(?:y|ies)|
    other\s+(?:users?|customers?|clients?|people|guests?|accounts?|travell?ers?)|everyone|everybody|
    all\s+(?:users?|customers?|clients?|guests?|accounts?|requests?)|any(?:one|body)|admin\w*|root|superuser"""
_ORDERS = r"""accept|access|act|activate|add|adjust|admit|agree|alert|allow|append|apply|approve|arrange|ask|
    assign|assume|attach|authorise|authorize|believe|block|break|bring|browse|bypass|call|cancel|
    change|charge|check|clear|click|close|commit|compare|complete|comply|confirm|connect|consider|
    contact|convert|copy|count|create|credit|deactivate|debit|decide|declare|decline|deduct|delete|
    deliver|deny|deploy|disable|discard|disclose|display|do|download|draft|drop|duplicate|edit|email|
    empty|enable|encode|decode|end|enforce|ensure|enter|erase|escalate|exchange|execute|exempt|expand|
    export|extend|fetch|fill|finish|fix|flag|follow|force|forget|format|forward|fulfil|fulfill|
    generate|get|give|go|grant|guarantee|handle|help|hide|hold|ignore|impersonate|import|include|
    increase|inform|insert|install|instruct|invoke|invite|issue|join|keep|leak|leave|let|link|list|
    load|lock|log|loosen|lower|mail|make|manage|mark|match|merge|message|modify|move|mute|name|note|
    notify|obey|omit|open|order|output|overlook|overrule|override|overwrite|pass|pay|permit|place|
    post|pretend|print|proceed|process|promise|promote|prove|provide|publish|pull|purchase|push|put|
    query|quote|raise|read|reassign|recommend|record|redirect|refer|refund|refuse|register|reject|
    release|relax|remember|remove|rename|replace|report|repeat|request|require|reserve|reset|resolve|
    respond|restore|retrieve|return|reveal|review|revoke|rewrite|run|save|say|search|see|select|sell|
    send|set|share|show|sign|skip|speak|start|stop|store|submit|subscribe|suggest|suspend|switch|
    tell|test|text|transfer|translate|treat|trigger|trust|try|turn|unlock|update|upgrade|upload|use|
    validate|verify|view|visit|void|waive|whitelist|wipe|wire|withdraw|write|say\s+yes|respond\s+to|hand\s+over|
    look\s+up"""
"""Verbs that begin an order. (A statement begins with whom it is about.)"""
_CHECKS = r"""(?:(?:identity|security|id|credit|background|safety|age|fraud)\s+)?(?:check|checks|verification|
    confirmation|approval|
    guidelines?|guardrails?|polic(?:y|ies)|rules?|restrictions?|limits?|fees?|charges?|deposits?|penalt(?:y|ies)|
    safeguards?|
    company\s+polic(?:y|ies))"""
_PERSON = r"""(?:the\s+)?(?:user|traveller|traveler|customer|client|guest|person|he|she|they)"""
_FROM_NOW_ON = r"""\bab\s+(?:jetzt|sofort|heute)\b|\bkünftig\b|\bvon\s+nun\s+an\b|\bdesde\s+(?:hoy|ahora)\b|
    \bde\s+ahora\s+en\s+adelante\b|
    \bà\s+partir\s+de\s+maintenant\b|\bdésormais\b|\bdorénavant\b|\bmulai\s+(?:sekarang|hari\s+ini)\b|
    \bmula(?:i)?\s+dari\s+sekarang\b|
    \ba\s+partir\s+de\s+(?:agora|hoje)\b|\bd'ora\s+in\s+poi\b|\bvanaf\s+nu\b|\bod\s+teraz\b|с\s+этого\s+момента|отныне|
    从现在起|從現在起|
    今后|今後|これから|من\s+الآن"""
_FOREIGN_LEVERS = r"""erstatt|auszahl|ausgezahlt|genehmig|freigeb|befehl|anweisung|rabatt|zugriff|regeln|ejecut|órden|
    orden\b|reembols|
    aprob|aprueb|autoriz|descuento|acceso|reglas|remise|accord|rembours|approuv|autoris|règles|pengembalian|setuju|
    abaikan|aturan|
    lulus|diskaun|diskon|退款|批准|授权|授權|折扣|付款|规则|استرداد|وافق|أوامر|خصم|القواعد|descont|aprov|regras|scont|rimbors|
    возврат|одобр|скидк|приказ|правил"""
_WITHOUT_CHECK = r"""\bohne\s+(?:\w+\s+)?(?:prüfung|rückfrage|bestätigung|freigabe|nachweis\w*|kontrolle|
    zu\s+(?:fragen|prüfen))\b|
    \bsin\s+(?:\w+\s+)?(?:confirmación|verifica\w+|comproba\w+|autorización|preguntar|revisión|aprobación)\b|
    \bsans\s+(?:\w+\s+)?(?:vérif\w+|confirm\w+|demander|autoris\w+|contrôle|justificatif\w*)\b|
    \btanpa\s+(?:\w+\s+)?(?:verifikasi|konfirmasi|persetujuan|pengesahan|kelulusan|cek|semak\w*|izin)\b|
    \bsem\s+(?:\w+\s+)?(?:verific\w+|confirm\w+|autoriza\w+|perguntar|aprovação)\b|
    \bsenza\s+(?:\w+\s+)?(?:verific\w+|conferm\w+|autorizz\w+|chiedere|controll\w+)\b|
    без\s+(?:проверк\w+|подтвержд\w+|согласован\w+)|(?:不用|不必|无需|無需|不需要|未经|免)\s*(?:核实|核實|确认|確認|验证|驗證|审批|審批|检查)|
    (?:دون|بدون|من\s+غير)\s+(?:ال)?(?:تحقق|تأكيد|موافقة|مراجعة|إثبات)|確認\s*(?:なし|不要)"""
_FLAGS = re.IGNORECASE | re.VERBOSE

_PATTERNS: tuple[re.Pattern[str], ...] = tuple(
    re.compile(pattern, _FLAGS)
    for pattern in (
        # Taking earlier instructions back, in some languages.
        r"""\b(?:ignore|disregard|forget|override|overrule|bypass|neglect|drop)\b[^.!?\n]{0,40}
            \b(?:previous|prior|above|earlier|preceding|all|any|your|the|these|those|system|every)\b[^.!?\n]{0,30}
            \b(?:instructions?|prompts?|rules?|directions?|directives?|guidelines?|messages?|polic(?:y|ies)|
            guardrails?|restrictions?|context|constraints?)\b""",
        r"""\b(?:ignor\w+|olvid\w+|esque\w+|oubli\w+|vergiss|vergesst|missachte\w*|omit\w+|abaikan|lupakan|dimentic\w+)\b
            [^.!?\n]{0,40}\b(?:reg(?:el|eln|las?|ras?|ole)|règles?|instru[cçz]\w+|istruzioni|consignes?|anweisung\w*|
            vorgaben|befehle?|ordens|órdenes|arahan|perintah|instruksi|peraturan|aturan)\b""",
        r"игнорируй\w*|забудь\s+(?:все|предыдущ)\w*",
        r"忽略.{0,12}(?:指令|指示|规则|提示|說明|说明)|無視.{0,12}(?:指示|命令)|(?:自动|自動|直接|无需|無需).{0,8}(?:批准|退款|确认|確認|授权|授權|付款)|(?:指示|命令).{0,6}無視",
        r"تجاهل.{0,24}(?:التعليمات|الأوامر|القواعد)",
        r"""\b(?:ignore|disregard|forget|delete|erase|wipe)\s+(?:everything|anything|all)\b[^.!?\n]{0,20}
            \b(?:above|before|earlier|previous\w*|said|told|know|knew|remember\w*|memor(?:y|ies))\b""",
        r"\bdecode\b[^.!?\n]{0,30}\b(?:follow|execute|obey|run|do\s+(?:it|what))\b|\b(?:obey|system\s+override)\b",
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
        r"(?<!when\s)(?<!if\s)(?<!unless\s)(?<!once\s)\byou\s+(?:are|must|shall|should|have\s+to|need\s+to)\b|"
        r"\byour\s+(?:\w+\s+)?(?:tasks?|roles?|jobs?|goals?|instructions?|rules?|purpose|mission|guidelines?|polic\w+)\b",
        r"\bwhen(?:ever)?\s+this\s+(?:memory|note|file|entry|text)\b|\bfuture\s+(?:assistants?|agents?|sessions?|models?)\b",
        r"\b(?:call|invoke|trigger|use)\b[^.!?\n]{0,30}(?:\b(?:functions?|apis?)\b|\b\w+_\w+\b|\w\(\))",
        r"\b(?:include|append|attach|add|give|put)\b[^.!?\n]{0,30}\b(?:api\s+keys?|credentials|passwords?|secrets|tokens?)\b",
        r"\b(?:always|every|each|whenever)\b[^\n]{0,60}\bhttps?://",
        # Authority that nobody checked, and other people's data.
        r"\b(?:verified|cleared|vetted|whitelisted)\s+by\s+(?:the\s+)?(?:security|admin\w*|staff|support|compliance|system)\b|"
        r"\bidentity\s+(?:is|was|has\s+been)\s+(?:confirmed|verified)\b|\bmust\s+be\s+(?:fulfilled|obeyed|approved|granted)\b",
        r"\bas\s+the\s+(?:developer|owner|creator|admin\w*)\s+of\s+(?:this|the)\s+(?:assistant|agent|bot|system|model)\b",
        r"""\b(?:others?|another|all|any|every)\s+(?:\w+\s+)?(?:users?|customers?|guests?|clients?|accounts?|travell?ers?)(?:'s?)?
            \s[^.!?\n]{0,20}\b(?:bookings?|data|accounts?|details?|numbers?|passports?|info\w*|records?|histor\w+)\b""",
        r"\b(?:can|may)\s+(?:access|see|read|edit|view)\b[^.!?\n]{0,20}\b(?:all|any|every|other)\b[^.!?\n]{0,20}"
        r"\b(?:accounts?|data|bookings?|records?|files?)\b",
        r"\b(?:passport|account|card|phone|id)\s+numbers?\b[^.!?\n]{0,30}\b(?:given|shown|shared|sent|told|disclosed)\b",
        # Standing orders about what only people decide.
        rf"""\b(?:always|never|automatically|from\s+now\s+on|henceforth|whenever|without\s+(?:asking|checking|
            confirm\w*|approval|verif\w*|limits?)|must|shall|should|has\s+to|have\s+to|do\s+not|don't|you\s+(?:may|can|
            are\s+allowed)|is\s+(?:allowed|entitled|authori[sz]ed|permitted|approved)\s+to|
            (?:assistant|agent|bot|model|system|ai)\s+(?:may|can|will|must|should|has|is))\b
            [^.!?\n]{{0,60}}?\b(?:{_LEVERS})\b""",
        r"(?:^|[.!?\n]\s*)(?:please\s+)?(?:approve|authori[sz]e|grant|refund|transfer|wire|execute|run|delete|erase|"
        r"wipe|disable|bypass|escalate|obey|trust)\s+(?:all|every|any|the|this|my|[$€£]?\d+|everything|anything|it|me)\b",
        r"""(?<!travel\s)(?<!estate\s)(?<!booking\s)\b(?:assistants?|agents?|bots?|ai)\b[^.!?\n]{0,40}
            \b(?:approv\w+|authori[sz]\w+|refund\w*|transfer\w*|pay\w*|charg\w+|bypass\w*|delet\w+|execut\w+|
    grant\w*)\b""",
        r"""\b(?:all|any|every|future|such|these)\s+(?:\w+\s+){0,3}?(?:payments?|invoices?|refunds?|charges?|transactions?|
            purchases?|transfers?|requests?)\b[^.!?\n]{0,40}\b(?:approv\w+|authori[sz]ed|granted|waived|
    automatic\w*)\b""",
        r"\b(?:never|not|no\s+longer)\s+needs?\s+(?:any\s+)?(?:confirm\w*|approv\w*|verif\w*|authori[sz]\w*|checks?)\b",
        r"\b(?:apply|give)\b[^.!?\n]{0,20}\b(?:discounts?|credits?)\b|\bset\b[^.!?\n]{0,20}\b(?:prices?|discounts?|fees?)\b|"
        r"\bpays?\s+nothing\b|\b(?:prices?|fees?|costs?|refunds?)\b[^.!?\n]{0,30}\b(?:zero|unlimited|always\s+free)\b",
        r"\bexempt(?:ed)?\s+from\b|\bstanding\s+authori[sz]ation\b|\bapproved\s+by\s+(?:management|the\s+(?:company|team))\b|"
        r"\b(?:company|system|house)\s+(?:polic(?:y|ies)|rules?)\b",
        r"\b(?:rules?|instructions?|guidelines?|polic(?:y|ies)|restrictions?|limits?)\b[^.!?\n]{0,20}"
        r"\b(?:no\s+longer|void|suspended|lifted|(?:do|does)\s+not\s+apply|don't\s+apply)\b",
        r"\b(?:may|can|allowed\s+to)\s+(?:view|see|access|edit|change)\b[^.!?\n]{0,30}\w's\b",
        # Whoever it is said by, some words are about control and not about a person's wishes.
        r"\bguardrails?\b|\boverrid(?:e|es|ing|den)\s+(?:the|all|any|every|this|that|your|our|previous|safety|polic\w+|rules?|limits?|it)\b|"
        r"\b(?:system|manual|admin\w*|safety|policy|operator)[\s-]+override\b|\boverride\s+(?:code|mode)\b|\bsuper-?(?:user|visor\s+mode)\b|\b(?:has|have|with|as)\s+root\b|\bpre-?cleared\b|"
        r"\b(?:second|two)[- ]factor\b|\b2fa\b|\bspeaks?\s+for\s+(?:the\s+)?(?:management|company|staff|owner)\b|"
        r"\b(?:is|are)\s+(?:staff|an?\s+(?:staff\s+member|employee\s+of\s+(?:this|the)\s+company))\b|"
        r"\b(?:as|be|is|are)\s+(?:paid|received|settled)\s+(?:automatically|in\s+advance)\b|\bon\s+behalf\s+of\s+(?:all|any|other)\b|"
        r"(?:^|\n)\s*(?:instructions?|orders?|commands?|directives?|rules?|policy)\s*:",
        # An order may be about answers; others wait for a person.
        rf"(?:^|\n|[.!?:]\s)\s*(?:please,?\s+)?(?:(?:always|never|automatically|do\s+not|don't)\s+)?(?:{_ORDERS})\b"
        r"(?!\s+(?:is|are|was|were)\b)",
        r"\b(?:pre-?approved|auto-?approved?|has\s+admin\w*|(?:has|have|with)\s+(?:full|unlimited|root|admin\w*)\s+"
        r"(?:access|rights|permissions?|privileges)|^(?:the|this)\s+\w+\s+is\s+(?:an?\s+)?(?:the\s+)?(?:system\s+)?(?:admin(?:istrator)?(?!\s+assistant)|superuser|"
        r"developer\s+of\s+(?:this|the)\s+\w+))\b",
        # What is checked, charged or ruled by the company, set aside: a check left out, a fee that does not count.
        rf"""\b(?:{_CHECKS})\b[^.!?\n]{{0,40}}(?<!was\s)(?<!were\s)\b(?:skipped|waived|dropped|omitted|bypassed|unnecessary|not\s+(?:needed|required)|
            (?:never|no\s+longer|not|don't|doesn't)\s+(?:apply|applies|count|counts|bind|binds|needed|required|asked|
    hold))\b""",
        rf"\bno\s+(?:\w+\s+)?(?:{_CHECKS})\b[^.!?\n]{{0,30}}\b(?:binds?|applies|apply|counts?|needed|required|asked|for)\b",
        r"""\bwithout\s+(?:any\s+|further\s+|having\s+to\s+|the\s+)?(?:check\w*|pay(?:ment|ing)|documents?|proof|proving|verif\w+|
            confirm\w*|approv\w+|authori[sz]\w+|permission|consent|asking\s+(?:any|the)\w*|review|receipts?|limits?|
    questions?)\b""",
        r"\b(?:doesn't|don't|does\s+not|do\s+not|never|no\s+longer)\s+(?:\w+\s+){0,2}?(?:prove|identify|authenticate|verify|confirm)\s+"
        r"(?:who|that|their|his|her|my|himself|herself|themselves|myself|anything)\b",
        r"(?<!before\s)(?<!until\s)(?<!unless\s)\b(?:whatever|any(?:thing)?|everything|all|every|each|whichever)\b[^.!?\n]{0,50}\b(?:is|are|gets?|be)\s+(?:\w+\s+)?"
        r"(?:paid|approved|booked|granted|carried\s+out|charged|reimbursed|refunded|settled|accepted|executed|automatic\w*)\b",
        r"\b(?:is|are|gets?|be)\s+(?:\w+\s+)?(?:approved|granted|paid\s+out|refunded|settled|accepted|carried\s+out|unlocked|comped)\s+"
        r"(?:straight\s+away|at\s+once|immediately|automatically|unseen|always|by\s+default|on\s+request|whenever)\b",
        r"\b(?:refunds?|claims?|discounts?|upgrades?|invoices?|fees?|charges?|withdrawals?)\b[^.!?\n]{0,40}"
        r"\b(?:are|is)\s+(?:automatic|unconditional|guaranteed|pre-?approved|waived|free\s+of\s+checks)\b",
        r"\b(?:agents?|assistants?|staff|the\s+company|we|you)\s+(?:must|should|shall|will|have\s+to|has\s+to|pays?|comps?|covers?)\b"
        r"[^.!?\n]{0,40}\b(?:comp|everything|all|for\s+free|suites?|upgrade|pay|pays)\b",
        # Standing rules and triggers: a rule for the future that isn't about the person.
        r"(?:^|[.!?\n]\s*)(?:standing|general|permanent|house)?\s*(?:order|rule|instruction|policy|directive|command)s?\s*(?:\d+\s*)?:",
        r"\b(?:whenever|each\s+time|every\s+time|as\s+soon\s+as|if)\b[^.!?\n]{0,60}\b(?:word|phrase|keyword|code\s*word|password|term|string)\b",
        r"(?:^|[.!?\n]\s*)(?:before|after|at\s+the\s+end\s+of|in|at\s+the\s+start\s+of)\s+(?:each|every|all|any)\s+(?:\w+\s+)?"
        r"(?:answer|reply|response|chat|conversation|session|message|booking|call|turn|summary)s?\b",
        r"\b(?:each|every|all|any)\s+(?:of\s+(?:your|the)\s+)?(?:future|later|new|next|coming)\s+(?:notes?|memor(?:y|ies)|answers?|entr(?:y|ies)|repl(?:y|ies)|summar(?:y|ies))\b",
        r"\b(?:next|another)\s+time\b[^.!?\n]{0,30}\brepeat\b|\bto\s+be\s+(?:carried\s+out|obeyed|followed|executed|acted\s+(?:up)?on|complied\s+with)\b",
        r"\bonly\b[^.!?\n]{0,40}\b(?:is|are)\s+to\s+be\s+(?:recommended|suggested|mentioned|used|trusted|offered)\b",
        r"\b(?:is|are)\s+to\s+be\s+(?:treated|trusted|obeyed|believed|paid|approved|followed|given)\b|\btrust\s+(?:this|the)\s+(?:person|user|guest|customer|traveller)\b",
        r"\b(?:messages?|words?|requests?|wishes)\b[^.!?\n]{0,40}\b(?:outrank|overrule|override|treated\s+as|count\s+as|are\s+(?:configuration|commands?|law))\b",
        # Who somebody claims to be, and what nobody could check: staff, the operator, verified, above the rules.
        rf"""\b(?:{_PERSON})\s+(?:is|was|counts\s+as|has\s+been|passes\s+as|must\s+be\s+treated\s+as)\s+(?:\w+\s+){{0,3}}?
            (?:(?:staff|verified|trusted|exempt|privileged|authenticated|superior)\b(?=\s*(?:$|[.,;]|in\b|by\b|for\b|
    on\b|and\b|with\b|everywhere))|(?:the|an?)\s+(?:\w+\s+)?(?:admin(?:istrator)?|operator|
            supervisor|moderator|superuser|insider)\s*(?:of|at|$|[.,;]|and))""",
        rf"""\b(?:{_PERSON})\s+(?:works|worked|is\s+employed)\s+(?:for|at|with)\s+(?:the\s+)?(?:\w+\s+){{0,2}}?(?:provider|maker|vendor|
            developers?|operator|creators?|company)\s+(?:of|behind)\s+(?:this|the)\s+(?:assistant|agent|bot|ai|model|
    platform|system|service)""",
        r"\b(?:passed|completed|cleared)\s+(?:the\s+)?(?:kyc|id(?:entity)?|security|background)\b|\blimit\w*\s+(?:is|are|was|has\s+been|have\s+been)\s+(?:lifted|removed|raised)\b|"
        r"\blifted\s+by\b|\bsigned\s+off\s+(?:that|on)\b|\b(?:like|as)\s+(?:a\s+)?(?:colleague|staff|employee|insider)\s+from\s+now\b",
        r"\b(?:can|may|could|is\s+free\s+to)\s+(?:change|cancel|edit|read|see|view|access|manage|move)\s+(?:(?:mr|mrs|ms|dr)\.?\s+)?(?:\w+\s+)?\w+(?:'s|s')\s+"
        r"(?:bookings?|reservations?|data|files?|account|details|trips?|profile)\b|\bread\s+(?:every|each|all|any)\w*\s+(?:guest|customer|user|client)",
        r"\bwarn\s+(?:every|any|all)\w*\b|\b(?:is|are)\s+an?\s+(?:fraud\w*|scammer|thief|criminal)\b",
        # Ways out: an address or a link that text is sent to, and what must not be shown.
        r"\b(?:go|goes|sent|send|copied|forwarded|mailed|posted|uploaded|filled\s+in)\b[^\n]{0,60}(?:@[\w-]+\.|https?://)|!\[[^\]]*\]\(|"
        r"(?:@[\w-]+\.|https?://)[^\n]{0,80}\b(?:filled\s+in|appended|sent|copied)\b",
        r"\b(?:show|state|stating|reading\s+out|repeat|list|include|print|display)\w*\b[^.!?\n]{0,30}\b(?:card|account|passport)\b[^.!?\n]{0,20}\b(?:details?|numbers?|on\s+file|data)\b|\bcard\s+on\s+file\b",
        r"\bgiven\s+(?:its|the|your)\s+(?:configuration|prompt|instructions|settings|source)\b|\b(?:configuration|prompt)\s+whenever\b",
        # A prompt's own forms, with a mark of the speaker's that isn't a colon.
        r"(?:^|\n)\s*(?:system|assistant|developer|operator|admin|root|user|human|ai)\s*(?:>|»|\||::|=>|-->)\s*\S",
        # The same in other languages: from now on; without a check; a rule set aside.
        rf"(?:{_FROM_NOW_ON})[\s\S]{{0,120}}(?:{_FOREIGN_LEVERS})",
        rf"{_WITHOUT_CHECK}",
        r"\bfreigeb\w*\s+ohne|\bimmer\b[^.!?\n]{0,40}\b(?:genehmig\w*|freigeb\w*|überweis\w*|bezahl\w*|erstatt\w*)",
        r"\b(?:siempre|nunca)\b[^.!?\n]{0,40}\b(?:aprueb\w*|aprobar|autoriz\w*|reembols\w*|transfi\w*|pag(?:a|ar|ue))\b",
        r"\btoujours\b[^.!?\n]{0,40}\b(?:approuve\w*|autorise\w*|rembourse\w*|payer|paie)\b",
        r"\b(?:selalu|sentiasa)\b[^.!?\n]{0,40}\b(?:setuju\w*|lulus\w*|(?:mem)?bayar\w*\s+(?:semua|setiap|apa|kepada|balik)|transfer\w*)\b|\bluluskan\b",
    )
)
# A form of answering is the user's own affair: language, tone, length, layout, units, names.
_ANSWERING = re.compile(
    r"""\b(?:answer|answers|answered|answering|reply|replies|replied|respond\w*|response\w*|write|written|speak|spoken|
        address\w*|greet\w*|call|explain\w*|summari[sz]e\w*|format\w*|translat\w*|language|tone|bullet\w*|units?|
        suggest\w*|recommend\w*|mention\w*|words?|ask(?:ed)?\s+(?:me|about|before|the\s+user|them)|emoji\w*|concise\w*|
    brief\w*|short|formal\w*|tables?|list|lists|sources?|quote|prices?|currency)\b""",
    _FLAGS,
)
# What the person does or has to do is a fact about them, as long as nobody else's decision is in it.
_ABOUT_THE_PERSON = re.compile(
    r"""^(?:the\s+)?(?:user|traveller|traveler|customer|client|guest|person|they|he|she|i)(?:'s\s+\w+)?\s+(?:also\s+)?
        (?:always|never|must|shall|should|has\s+to|have\s+to)\b""",
    _FLAGS,
)
_HABIT = re.compile(
    rf"^{_PERSON}\s+(?:always|never|usually|often)\s+(?!gets?\b|receives?\b|needs?\b|has\b|is\b|does\b)\w+s\b[^.!?\n]*[.!?]?$",
    _FLAGS,
)
"""What the person does again and again, about money or not, is a fact about them."""
_ABOUT_THEIR_PEOPLE = re.compile(
    rf"""^{_PERSON}'s\s+(?:\w+\s+)?(?:boss|employer|manager|company|firm|school|university|doctor|bank|insur\w+|landlord|wife|
        husband|partner|mother|father|parents|sister|brother|son|daughter|children|kids|team|accountant|lawyer|family|
    club)\s+
        (?:also\s+)?(?:always|never|must|shall|should|has\s+to|have\s+to|needs?\s+to)\b""",
    _FLAGS,
)
"""What others in their life decide is a fact about them as well."""
_ORDER_ABOUT_ANSWERS = re.compile(
    rf"(?:^|\b(?:always|never|please|don't|should|must|prefers?|wants?)\b.*){_ANSWERING.pattern}|"
    rf"^(?:use|give|keep|include|put|list|start|end|make)\b.*{_ANSWERING.pattern}",
    _FLAGS,
)
_FORM = re.compile(
    r"""\s*(?:please,?\s+|always\s+|never\s+|only\s+|do\s+not\s+|don't\s+|remember\s+to\s+|be\s+sure\s+to\s+|make\s+sure\s+to\s+)*
        (?:address|answer|reply|respond|write|speak|talk|greet|call|explain|summari[sz]e|format|translate|use|avoid|put|keep|show|
        list|include|add|give|start|begin|open|end|finish|close|lead|number|round|bold|highlight|underline|sort|order|rank|
        group|compare|mention|skip|leave|omit|repeat|apologi[sz]e|say|tell|ask|suggest|recommend|quote|state|name|return|
        send|make|mix|stick|limit|offer|provide|display|print|spell|describe|break|shorten|prefix|remember|illustrate|abbreviate|
        capitali[sz]e|indent|cite|link|convert|express|measure|note|separate|split|wrap|attach|phrase|refer|introduce|
        assume|prefer|consider|follow|cut|drop|reduce|switch|stop|try|expand)\b""",
    _FLAGS,
)
"""How an order begins that may be about the form or content of answers."""
_NO_FORM = re.compile(
    r"""\b(?:whatever|whoever|(?:any|every)thing(?!\s+(?:with|but|about|in|from|spicy|sweet|that\s+(?:has|contains))\b)|anyone|anybody|yes|true|rules?|instructions?|guidelines?|guardrails?|polic(?:y|ies)|
        restrictions?|requests?|demands?|orders?\s+from|messages?\s+from|claims?|complaints?|access|rights?|prompt|config\w*|
        tools?|functions?|commands?|accounts?|bookings?|reservations?|payments?|cards?\b(?!\s+games?)|passwords?|others?'?|
        conversations?|sessions?|memor(?:y|ies)|phrase|slogan|keyword|code\s*word|copy|copies|checks?|verification|limits?|
        (?:other|another|all|every)\s+(?:guests?|customers?|users?|clients?|people)|no\s+longer|second\s+factor|
        trusted|verified|cleared|pre-\w+|staff|admin\w*|free\b(?!\s+of\b)|next\s+time)\b|\w_\w|\(\)|[<>{}\[\]]|@|//""",
    _FLAGS,
)
"""What an order about answers doesn't speak of."""
_SHOWS = re.compile(
    r"""\s*(?:please,?\s+|always\s+|never\s+|don't\s+|do\s+not\s+)*(?:give|show|list|provide|include|mention|explain|
        describe|quote|state|write|use|send|name|format|summari[sz]e|present|prefer)\b""",
    _FLAGS,
)
_TOPIC = re.compile(
    r"""\b(?:(?:refund|cancellation|payment|discount|transfer|upgrade|invoice|purchase|credit|approval|charge|waiver)\s+
        (?:conditions?|terms|rules|deadlines?|options|dates|methods|fees|times|amounts|polic(?:y|ies))|
        (?:sql|shell|bash|api|powershell|terminal)\s+(?:quer(?:y|ies)|examples?|code|commands?|snippets?|scripts?|statements?|
    docs|calls)|
        commands?\s+(?:for|in)\s+\w+|sql|bash|shell|scripts?)\b(?!\s+(?:to|on|against|access|from|at)\b)""",
    _FLAGS,
)
"""What answers may be about, though the same words are levers where something is done with them."""
_SENTENCE = re.compile(r"[.!?\n]+\s*")
_IS_A_FACT = re.compile(
    r"^(?!(?:the\s+)?(?:agents?|assistants?|staff|support|employees?|everyone|you|we|it|this|that|there)\b)"
    r"(?:the\s+)?(?:children|kids|babies|infants|seniors|students|pensioners|residents|members|locals|dogs|pets|trains?|buses|"
    r"ferries|hotels?|airlines?|shops|banks?|museums?|restaurants?)\b[^.!?\n]{0,40}\b(?:don't|do\s+not|doesn't|never|always)\b",
    _FLAGS,
)
"""What holds of people and places in general is a fact, whether anybody pays there or not."""
_HARD_LEVERS = re.compile(
    r"""\b(?:approv\w*|authori[sz]\w*|permission\w*|grant\w*|refund\w*|transfer\w*\s+(?:money|funds?|all|[$€£\d])|payment\w*|charge\w*|invoice\w*|
        discount\w*|credits?\b(?!\s+cards?)|waive\w*|tools?|functions?|commands?|execute\w*|scripts?|shell|sql|
    delete\w*|wipe\w*|bypass\w*|override\w*|disable\w*|
        admin\w*|other\s+(?:users?|customers?|clients?|guests?|accounts?|travell?ers?)|everyone|everybody|anyone|
        all\s+(?:users?|customers?|clients?|accounts?|requests?)|password\w*|secrets?|credentials|system\s+prompt)\b|
    \w@\w|https?://""",
    _FLAGS,
)


def is_instruction(text: str) -> bool:
    """Whether a statement orders the assistant about beyond the form and content of its answers."""
    plain = _plain(text)
    if _LEET.search(plain) and _PATTERNS[0].search(plain.translate(_AS_LETTERS)):
        return True
    if _HIDES.search(text) or _is_mixed(plain) or _is_spelled_out(plain):
        return True
    return any(map(_orders_or_gives_power, (plain, *_hidden(plain)))) or any(map(_orders, _turned(plain)))


def _orders_or_gives_power(text: str) -> bool:
    plain = without_harmless_phrases(text)
    return _orders(plain) or gives_power(plain)


def _orders(plain: str) -> bool:
    if _SHOWS.match(plain):
        plain = _TOPIC.sub("topic", plain)
    found = [number for number, pattern in enumerate(_PATTERNS) if pattern.search(plain)]
    if found and set(found) <= _SOFT and (_HABIT.search(plain) or not _HARD_LEVERS.search(plain)):
        return not (_is_about_answers(plain) or _ABOUT_THE_PERSON.search(plain) or _IS_A_FACT.search(plain))
    return bool(found) and not (set(found) <= _SOFT and _ABOUT_THEIR_PEOPLE.search(plain))


def _is_about_answers(plain: str) -> bool:
    """Whether all that is ordered is how answers look or what they hold."""
    if _ORDER_ABOUT_ANSWERS.search(plain):
        return True
    return all(_FORM.match(each) and not _NO_FORM.search(each) for each in _SENTENCE.split(plain) if each.strip())


def _hidden(text: str) -> Iterator[str]:
    """What a text may say in another writing: base64 and hex in it, digits for letters."""
    for each in (*_decoded(text), *_from_hex(text)):
        yield each
        yield from _decoded(each)
    if len(_LEET.findall(text)) > 3:
        yield text.translate(_AS_LETTERS)


def _turned(text: str) -> Iterator[str]:
    """The whole in rot13, and read backwards: looked at for orders alone, since every text has them."""
    yield codecs.encode(text, "rot13")
    yield text[::-1]


def _is_spelled_out(text: str) -> bool:
    """Single letters in a row that may spell words; one letter over and over spells none."""
    return any(len(set(found[0].casefold())) > _LETTERS_OF_WORDS for found in _SPELLED_OUT.finditer(text))


def _is_mixed(text: str) -> bool:
    """Letters of two alphabets in one word: it looks like another word than it is."""
    if text.isascii():
        return False
    return any(_LATIN.search(word) and _LOOKALIKE.search(word) for word in re.findall(r"[^\W\d_]{4,}", text))


def _from_hex(text: str) -> Iterator[str]:
    for found in _HEX.finditer(text):
        with contextlib.suppress(ValueError):
            hidden = bytes.fromhex(found[0]).decode()
            if hidden.isprintable():
                yield hidden


def _decoded(text: str) -> Iterator[str]:
    """Readable text hidden as base64. What it decodes to is shorter, so this ends."""
    for found in _BASE64.finditer(text):
        with contextlib.suppress(ValueError):
            hidden = base64.b64decode(found[0] + "=" * (-len(found[0]) % 4)).decode()
            if hidden.isprintable():
                yield hidden


_LEET = re.compile(r"[A-Za-z][013457@$]|[013457@$][A-Za-z]")
_AS_LETTERS = str.maketrans("013457@$", "oieastas")
_HEX = re.compile(r"\b(?:[0-9a-fA-F]{2}){8,}\b")
_HIDES = re.compile(
    "[\u202a-\u202e\u2066-\u2069]|(?<!\U0001f3f4)[\U000e0020-\U000e007e]{3,}(?![\U000e0020-\U000e007e]*\U000e007f)"
)
"""Overrides that turn the reading order around, and invisible letters (those of a flag's code have their flag)."""
_LATIN, _LOOKALIKE = re.compile("[A-Za-z]"), re.compile("[\u0370-\u03ff\u0400-\u04ff]")
_SPELLED_OUT = re.compile(r"(?:\b[^\W\d_]\s+){8,}")
_LETTERS_OF_WORDS = 5
_BASE64 = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")
_SOFT = frozenset(
    number for number, pattern in enumerate(_PATTERNS) if "henceforth" in pattern.pattern or _ORDERS in pattern.pattern
)
"""Patterns of orders as such, which may be about the form or content of answers after all."""


def _plain(text: str) -> str:
    """NFKC without invisible characters and runs of white space, so that spelling tricks don't hide an order."""
    folded = unicodedata.normalize("NFKC", text).replace("’", "'")
    visible = "".join(char for char in folded if unicodedata.category(char) != "Cf")
    return "\n".join(" ".join(line.split()) for line in visible.splitlines() if line.strip())
