"""words: what a text is found by, and what a question asks for."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from docmem.config import Settings
from docmem.files import render_memory
from docmem.index import Reader
from docmem.inject import Injector
from docmem.recall import search
from docmem_sync.sync import sync_tenant
from tests.support.repos import memory, put

EXACT: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "data" / "exact.yaml").read_text(encoding="utf-8")
)
ALIKE = [
    *(
        f"The traveller is booked on {line} {number} to Munich."
        for line in ("LH", "TP")
        for number in range(1235, 1250)
    ),
    *(f"The server answers with TP-{number} since the update." for number in range(1359, 1374)),
    *(f"The customer disputes INV-{2023 + number % 3}-{number:05} because of shipping." for number in range(175, 195)),
    *(f"The customer transferred {number},250.50 euros for the boat." for number in range(2, 17)),
    *(f"The plumber can be called under +49 {number} 76543{number % 10}2." for number in range(31, 46)),
    *(f"The refund goes to DE{number} 3704 0044 0532 0130 {number}." for number in range(10, 25)),
    *(f"The contract was signed on 2024-{month:02}-11 in Rome." for month in range(1, 13)),
    *(f"Frau Meyer {name} liest die Akten." for name in ("Weber", "Huber", "Lang", "Maurer", "Mühl")),
    *(
        "東京は雨です。",
        "妻は元気です。",
        "今日は忙しいです。",
        "他每天跑步。",
        "她住在北京。",
        "ลูกค้าอยู่เชียงใหม่",
        "고객은 서울에 삽니다.",
    ),
]


@pytest.fixture
def exact(indexed: Settings, tenant: str) -> Settings:
    """Each statement a memory of Ana's, and a document; what looks like them among them."""
    said = [*(one["says"] for one in EXACT), *ALIKE]
    random.Random(1).shuffle(said)
    memories = [memory(text, number=number, valid_from=None) for number, text in enumerate(said)]
    changed: dict[str, bytes | None] = {one.path: render_memory(one) for one in memories}
    put(indexed, tenant, changed | {f"knowledge/d{n}a.md": text.encode() for n, text in enumerate(said)})
    sync_tenant(indexed, tenant)
    return indexed


@pytest.fixture
def reader(exact: Settings) -> Iterator[Reader]:
    made = Reader(exact, timeout=30, opening=30)
    yield made
    made.close()


def test_what_is_exact_is_found_first_however_it_is_written(exact: Settings, reader: Reader) -> None:
    where: list[dict[str, Any]] = [
        {"subject": "ana", "folders": ()}, {"folders": ()}, {"subject": "ana", "kinds": ()},
    ]  # fmt: skip
    missed: list[tuple[str, object, list[str]]] = []
    with Injector(exact, timeout=30, files=False) as injector:
        for one in EXACT:
            for question in one["asked"]:
                for how in where:
                    found = [hit.text.strip() for hit in search(reader, "acme", question, **how).hits]
                    if found[:1] != [one["says"]]:
                        missed.append((question, how, found[:2]))
                if one["says"] not in injector.packet("acme", "ana", question).text:
                    missed.append((question, "packet", []))
    assert missed == []
