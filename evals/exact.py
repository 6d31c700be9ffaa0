"""Whether exact things are found that are written in another way than they are asked for.

    python evals/exact.py [--each 24] [--seed 1] [--json]

Of each kind (flights, invoices, amounts, telephone numbers, names, dates …) `--each` memories of one person, beside as
many that differ in one digit or word only; each written in one of the kind's ways, and asked for in every other; and
sixteen statements in scripts without spaces. Asked of the person's memories (`subject`), of all of the tenant's
(`tenant`), of documents (`documents`), and as the goal of a packet (`packet`); and of the person's memories without
Postgres (`files`, `packet of files`). Printed: the share that is found among the first 10, and ranked first. Then each
thing is asked for ("What about {0}?") in each way of somebody who has only its neighbour: the share of the packets that
show that (`neighbour`) should be none.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from docmem import names, postgres, repository
from docmem.assembly import requested
from docmem.config import Settings
from docmem.fallback import Fallback
from docmem.fence import one_line
from docmem.files import render_memory
from docmem.filesearch import Passages, config_at, memories_at, ranked
from docmem.index import Reader
from docmem.inject import Injector
from docmem.layout import memory_path
from docmem.model import Memory, Source
from docmem.packet import Packet
from docmem.recall import search
from docmem_sync.sync import sync_tenant

TENANT, PERSON, APART = "acme", "ana", "globex"
GERMAN = ("Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober")
SPANISH = tuple(
    f"de {name} de"
    for name in ("enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre")
)
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October")


@dataclass(frozen=True)
class Thing:
    """Something exact: the ways to write it, and a neighbour that isn't it, written the first way."""

    written: tuple[str, ...]
    other: str


def flight(rng: random.Random) -> Thing:
    """LH 1234."""
    line, number = rng.choice(("LH", "TP", "BA", "MH")), rng.randrange(1000, 9990)
    ways = (f"{line} {number}", f"{line}{number}", f"{line}-{number}", f"{line.lower()} {number}")
    return Thing((*ways, f"{line}{number}".lower()), f"{line} {number + 1}")


def invoice(rng: random.Random) -> Thing:
    """INV-2024-00174."""
    year, number = rng.randrange(2019, 2026), rng.randrange(100, 990)

    def code(between: str, number: int) -> str:
        return between.join(("INV", str(year), f"{number:05}"))

    return Thing(
        (*(code(mark, number) for mark in ("-", " ", "", "/")), code(" ", number).lower()), code("-", number + 1)
    )


def error(rng: random.Random) -> Thing:
    """E-1042."""
    number = rng.randrange(1000, 9990)
    return Thing((f"E-{number}", f"E{number}", f"e {number}", f"E_{number}"), f"E-{number + 1}")


def amount(rng: random.Random) -> Thing:
    """1,250.50."""
    thousands, rest, cents = rng.randrange(1, 99), rng.randrange(100, 999), rng.randrange(11, 99)
    ways = (f"{thousands}{rest}.{cents}", f"{thousands},{rest}.{cents}", f"{thousands}.{rest},{cents}")
    spaced = (f"{thousands} {rest},{cents}", f"{thousands}\N{NARROW NO-BREAK SPACE}{rest},{cents}")
    return Thing((*ways, *spaced, f"{thousands}'{rest}.{cents}"), f"{thousands}{rest + 1}.{cents}")


def telephone(rng: random.Random) -> Thing:
    """+49 30 1234567."""
    area, first, last = rng.randrange(30, 99), rng.randrange(100, 999), rng.randrange(1000, 9990)
    ways = (f"+49 {area} {first}{last}", f"+49{area}{first}{last}", f"+49-{area}-{first}-{last}")
    near = (f"0{area} {first} {last}", f"(0{area}) {first}-{last}", f"0049 {area} {first}{last}")
    return Thing((*ways, *near), f"+49 {area} {first}{last + 1}")


def account(rng: random.Random) -> Thing:
    """DE89 3704 0044 0532 0130 00, GB29 NWBK 6016 1331 9268 19."""
    bank, number = rng.choice(("", "NWBK")), rng.randrange(10**13, 10**14)

    def iban(number: int) -> str:
        return f"{'GB' if bank else 'DE'}{number % 90 + 10}{bank}{number}"

    def grouped(code: str) -> str:
        return " ".join(code[at : at + 4] for at in range(0, len(code), 4))

    plain = iban(number)
    return Thing((grouped(plain), plain, grouped(plain).lower(), plain.lower()), grouped(iban(number + 1)))


def postcode(rng: random.Random) -> Thing:
    """SW1A 1AA."""
    area, one, two = rng.choice(("SW", "EC", "NW")), rng.randrange(1, 9), rng.randrange(1, 9)
    letters = "".join(rng.sample("ABDEFGHJLNPQ", 3))
    first, last = f"{area}{one}{letters[0]}", f"{two}{letters[1:]}"
    return Thing((f"{first} {last}", f"{first}{last}", f"{first} {last}".lower()), f"{first} {two + 1}{letters[1:]}")


def version(rng: random.Random) -> Thing:
    """v2.14.3."""
    parts = [rng.randrange(1, 9), rng.randrange(10, 60), rng.randrange(1, 9)]
    plain = ".".join(map(str, parts))
    return Thing((f"v{plain}", plain), f"v{parts[0]}.{parts[1] + 1}.{parts[2]}")


def date(rng: random.Random) -> Thing:
    """2 May 2024."""
    year, month, day = rng.randrange(2019, 2026), rng.randrange(10), rng.randrange(13, 27)
    name, other = MONTHS[month], f"{day}. {GERMAN[month]} {year}"
    ways = (
        f"{day} {name} {year}",
        f"{year}-{month + 1:02}-{day:02}",
        f"{name} {day}, {year}",
        f"{day}th of {name} {year}",
    )
    short = (f"{day}-{name[:3]}-{year}", f"{day} {SPANISH[month]} {year}", f"{day}/{month + 1:02}/{year}", other)
    return Thing((*ways, f"{day:02}.{month + 1:02}.{year}", *short), f"{day + 1} {name} {year}")


def time(rng: random.Random) -> Thing:
    """2:30 pm."""
    hour, minute = rng.randrange(1, 12), rng.randrange(10, 58)
    ways = (f"{hour}:{minute} pm", f"{hour + 12}:{minute}", f"{hour + 12}h{minute}", f"{hour + 12}.{minute} Uhr")
    return Thing((*ways, f"{hour}.{minute} p.m."), f"{hour}:{minute} am")


def share(rng: random.Random) -> Thing:
    """15%."""
    number = rng.randrange(100, 990) / 10
    ways = (f"{number}%", f"{number} %", f"{number} percent", f"{number} Prozent".replace(".", ","))
    return Thing(ways, f"{number} parts")


def numbered(rng: random.Random) -> Thing:
    """No. 4012."""
    number = rng.randrange(1000, 9990)
    return Thing((f"No. {number}", f"No.{number}", f"#{number}", f"n° {number}", f"Nr. {number}"), f"No. {number + 1}")


def plate(rng: random.Random) -> Thing:
    """AB-123-CD."""
    first, last = ("".join(rng.sample("BCDFGHJKLNPQRSTVWXZ", 2)) for _ in range(2))
    number = rng.randrange(100, 990)
    ways = (f"{first}-{number}-{last}", f"{first} {number} {last}", f"{first}{number}{last}")
    return Thing((*ways, f"{first}{number}{last}".lower()), f"{first}-{number + 1}-{last}")


def machine(rng: random.Random) -> Thing:
    """3c:22:fb:1a:9e:07."""
    parts = [f"{rng.randrange(256):02x}" for _ in range(5)]
    last = rng.randrange(255)
    plain = [*parts, f"{last:02x}"]
    ways = (":".join(plain), "-".join(plain), ":".join(plain).upper())
    return Thing(ways, ":".join((*parts, f"{last + 1:02x}")))


def address(rng: random.Random) -> Thing:
    """2001:db8::1f."""
    site, host = rng.randrange(16, 4096), rng.randrange(16, 255)
    ways = (f"2001:db8:{site:x}::{host:x}", f"2001:0db8:{site:04x}::{host:04X}", f"2001:DB8:{site:X}::{host:X}")
    return Thing(ways, f"2001:db8:{site:x}::{host + 1:x}")


def program(rng: random.Random) -> Thing:
    """python 3.11."""
    of, number = rng.choice(("python", "postgres", "ubuntu")), rng.randrange(1, 20)
    major = rng.randrange(2, 30)
    ways = (f"{of} {major}.{number}", f"{of}{major}.{number}", f"{of.title()}-{major}.{number}")
    return Thing(ways, f"{of} {major}.{number + 1}")


SPELLED = {
    "Müller": ("Mueller", "Muller", "Mu\u0308ller", "MÜLLER"),
    "O'Brien": ("OBrien", "O’Brien", "obrien"),
    "Smith-Jones": ("SmithJones", "Smith Jones"),
    "Jørgensen": ("Joergensen", "Jorgensen", "JØRGENSEN"),
    "Weiß": ("Weiss", "WEISS"),
    "Håkansson": ("Hakansson", "Haakansson"),
    "O’Connell": ("O'Connell",),
    "“Rosebud”": ("Rosebud", "'Rosebud'"),
    "Łukasz—who": ("Lukasz",),
    "ＡＣＭＥ": ("acme", "ACME"),
    "Nuñez": ("Nunez", "Nun\u0303ez"),
    "Chloé’s": ("Chloe's", "Chloé's"),
}


def name(rng: random.Random) -> Thing:
    """Müller, Mueller."""
    spelled = rng.choice(sorted(SPELLED))
    ways = (spelled, *SPELLED[spelled])
    return Thing(tuple(rng.sample(ways, len(ways))), rng.choice(("Meyer", "Jansen", "Weber", "Larsen")))


KINDS: Mapping[str, tuple[Callable[[random.Random], Thing], str, str]] = {
    "flight": (flight, "The traveller is booked on {0} to Munich.", "When does {0} leave?"),
    "invoice": (invoice, "The customer disputes {0} because of shipping.", "What is wrong with {0}?"),
    "error": (error, "The printer showed {0} after the update.", "What did they do about {0}?"),
    "amount": (amount, "The customer transferred {0} euros for the boat.", "Was {0} ever paid?"),
    "telephone": (telephone, "The customer can be called under {0} in the evening.", "Whose number is {0}?"),
    "account": (account, "The refund goes to {0} in any case.", "Is {0} the right account?"),
    "postcode": (postcode, "The parcels go to {0} from now on.", "Deliver to {0}?"),
    "version": (version, "The customer runs {0} of the server.", "Is {0} affected?"),
    "date": (date, "The contract was signed on {0} in Rome.", "What was signed on {0}?"),
    "time": (time, "The plumber comes at {0} and stays long.", "Who comes at {0}?"),
    "share": (share, "The customer pays {0} of the rent.", "Who pays {0}?"),
    "numbered": (numbered, "The customer disputes receipt {0} since May.", "What is wrong with {0}?"),
    "plate": (plate, "The customer's van is {0} and stands outside.", "Where is {0}?"),
    "machine": (machine, "The printer in the hall is {0} now.", "What is {0}?"),
    "address": (address, "The server in the cellar is {0} now.", "Is {0} up?"),
    "program": (program, "The job of the customer needs {0} to run.", "Is {0} there?"),
    "name": (name, "The customer's lawyer is called {0} and lives in Bern.", "Who is {0}?"),
}

UNSPACED = (
    ("東京の寿司屋を予約しました。", "寿司が食べたい"),
    ("妻は蕎麦アレルギーがあります。", "アレルギーはありますか？"),
    ("来週LH1234便で大阪へ出張します。", "大阪出張はいつですか"),
    ("毎朝ラーメンを食べる。", "ラーメン"),
    ("犬を飼っている。", "犬"),
    ("用户对花生过敏。", "有什么过敏吗？"),
    ("他喜欢靠窗的座位。", "座位"),
    ("我们在成都订了一家酒店。", "成都的酒店"),
    ("她每天喝茶。", "茶"),
    ("ลูกค้าแพ้ถั่วลิสง", "แพ้ถั่วอะไรไหม"),
    ("ชอบดื่มกาแฟตอนเช้า", "กาแฟ"),
    ("ไปเที่ยวกรุงเทพเดือนหน้า", "กรุงเทพ"),
    ("고객은 김치를 좋아합니다.", "김치"),
    ("서울에서 회의가 있습니다.", "서울 회의는 언제?"),
    ("ລູກຄ້າມັກກິນເຂົ້າໜຽວ", "ເຂົ້າໜຽວ"),
    ("အမျိုးသမီးသည် လက်ဖက်ရည် ကြိုက်သည်", "လက်ဖက်ရည်"),
)


@dataclass(frozen=True)
class Asked:
    """A question, and the statement that it is after."""

    kind: str
    question: str
    wanted: str


def made(rng: random.Random, each: int) -> tuple[list[str], list[Asked], list[Asked]]:
    """All statements, those that distract among them; the questions; and those about what isn't said, each with the
    statement about its neighbour."""
    said: dict[str, None] = {}
    asked, missing = [], []
    for kind, (thing, statement, question) in KINDS.items():
        known: set[str] = set()
        for number in range(each):
            one = thing(rng)
            if min(one.written) in known:
                continue
            known.add(min(one.written))
            way = number % len(one.written)
            wanted = statement.format(one.written[way])
            said |= dict.fromkeys((wanted, statement.format(one.other)))
            asked += [Asked(kind, question.format(other), wanted) for at, other in enumerate(one.written) if at != way]
            missing += [Asked(kind, f"What about {written}?", statement.format(one.other)) for written in one.written]
    for wanted, question in UNSPACED:
        said[wanted] = None
        asked.append(Asked("no spaces", question, wanted))
    return list(said), asked, missing


def laid_down(settings: Settings, said: Sequence[str], missing: Sequence[Asked]) -> None:
    """Two tenants: one holds each statement as a memory of one person, and as a document; in the other each neighbour
    is the memory of a person of its own."""
    changed: dict[str, bytes | None] = {}
    for number, text in enumerate(said):
        changed |= _memory(TENANT, PERSON, number, text)
        changed[f"knowledge/d{number}a.md"] = f"{text}\n".encode()
    _commit(settings, TENANT, changed)
    changed = {}
    for number, text in enumerate(dict.fromkeys(one.wanted for one in missing)):
        changed |= _memory(APART, text, number, text)
    _commit(settings, APART, changed)


def _memory(tenant: str, person: str, number: int, text: str) -> dict[str, bytes | None]:
    subject, memory_id = names.subject_of_id(tenant, person), f"{number:016x}"
    path = memory_path(subject, memory_id, "m")
    source = Source(thread="t", turns=("1",))
    memory = Memory(id=memory_id, kind="fact", text=text, subject=subject, path=path, source=source)
    return {path: render_memory(memory)}


def _commit(settings: Settings, tenant: str, changed: Mapping[str, bytes | None]) -> None:
    repo = repository.create(settings, tenant)
    with repo.locked():
        repo.commit(repo.head(), changed, message="lay down", now=datetime.now(UTC))
    sync_tenant(settings, tenant)


def measure(settings: Settings, asked: Sequence[Asked], missing: Sequence[Asked]) -> Iterator[dict[str, Any]]:
    """A row for each kind and each way to ask."""
    reader = Reader(settings, timeout=30, opening=30)
    tally: dict[tuple[str, str], list[int | None]] = {}
    where: Mapping[str, Mapping[str, Any]] = {
        "subject": {"subject": PERSON, "folders": ()},
        "tenant": {"folders": ()},
        "documents": {"subject": PERSON, "kinds": ()},
    }
    in_files = passages_of(settings)
    fallback = Fallback(settings)
    with Injector(settings, timeout=30, files=False) as injector:
        for one in asked:
            ranks: dict[str, int | None] = {
                name: _rank([hit.text.strip() for hit in search(reader, TENANT, one.question, **how).hits], one.wanted)
                for name, how in where.items()
            }
            in_them = ranked(one.question, [in_files], limit=10)
            ranks["files"] = _rank([hit.text for hit in in_them], one_line(one.wanted))
            ranks["packet"] = _place(injector.packet(TENANT, PERSON, one.question), one.wanted)
            wanted = requested(TENANT, PERSON, one.question, agent=None, run=None, blocks=None, documents=())
            ranks["packet of files"] = _place(fallback.packet(wanted, wait=30), one.wanted)
            for name, rank in ranks.items():
                tally.setdefault((one.kind, name), []).append(rank)
        for one in missing:
            shown = injector.packet(APART, one.wanted, one.question).text
            tally.setdefault((one.kind, "neighbour"), []).append(1 if one_line(one.wanted) in shown else None)
    reader.close()
    for (kind, name), of_kind in tally.items():
        found = sum(rank is not None for rank in of_kind) / len(of_kind)
        first = sum(rank == 1 for rank in of_kind) / len(of_kind)
        yield {"kind": kind, "where": name, "asked": len(of_kind), "found": round(found, 3), "first": round(first, 3)}


def passages_of(settings: Settings) -> Passages:
    """The person's memories as `search --files` looks through them."""
    repo = repository.open(settings, TENANT)
    head = repo.head()
    assert head is not None
    made = Passages(config_at(repo, head).language)
    for memory in memories_at(repo, head, names.subject_of_id(TENANT, PERSON)):
        made.add_memory(memory, head, datetime.now(UTC))
    return made


def _place(packet: Packet | None, wanted: str) -> int | None:
    assert packet is not None
    shown = one_line(wanted)
    facts = [line for line in packet.text.splitlines() if line.startswith("- ")]
    return _rank([line[2 : 2 + len(shown)] for line in facts], shown)


def _rank(texts: Sequence[str], wanted: str) -> int | None:
    return texts.index(wanted) + 1 if wanted in texts else None


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=24, help="things of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one JSON object last")
    options = parser.parse_args()
    said, asked, missing = made(random.Random(options.seed), options.each)
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)  # the server doesn't run as root
        settings = Settings(root=Path(name), embedding_model="none", secret="of the measure")
        try:
            postgres.start(settings)
            laid_down(settings, said, missing)
            rows = list(measure(settings, asked, missing))
        finally:
            postgres.remove(settings)
    kinds = dict.fromkeys(row["kind"] for row in rows)
    print(f"{len(said)} memories, {len(asked)} questions; found among the first 10 / first")
    for kind in kinds:
        of_kind = [row for row in rows if row["kind"] == kind]
        print(f"{kind:<10}" + "".join(f"  {row['where']} {row['found']:.2f} / {row['first']:.2f}" for row in of_kind))
    if options.json:
        print(json.dumps({"seed": options.seed, "memories": len(said), "questions": len(asked), "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
