"""What `docmem.yaml` says about serving: how much a packet holds, how recall ranks, how long a memory is recalled.

Without pydantic, which takes 12 MB: an agent's process that reads memory needs no more of the file than this, and what
it reads of it was checked before it was written to the index.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le

from docmem.model import Kind
from docmem.packet import Block

RETENTION: Mapping[Kind, timedelta | None] = MappingProxyType(
    {"episode": timedelta(days=90), "preference": timedelta(days=365), "fact": None, "decision": None}
)
"""How long after `valid_from` a memory is recalled where `docmem.yaml` doesn't say; None: always."""

_Entries = Annotated[int, Ge(0), Le(100)]
_Tokens = Annotated[int, Ge(0), Le(100_000)]
_Weight = Annotated[float, Ge(0)]


@dataclass(frozen=True)
class Budgets:
    """Most entries and tokens a packet holds; `blocks`: the most tokens of one block."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    preferences: _Entries = 10
    facts: _Entries = 5
    episodes: _Entries = 5
    knowledge: _Entries = 5
    learned: _Entries = 3
    experiments: _Entries = 3
    attributes: _Entries = 20
    value_characters: Annotated[int, Ge(20), Le(2000)] = 200
    tokens: Annotated[int, Ge(100), Le(100_000)] = 1500
    blocks: dict[Block, _Tokens] = field(default_factory=dict)


@dataclass(frozen=True)
class Weights:
    """How recall ranks: reciprocal rank fusion, then relevance, recency and importance.

    `verdict`: what it counts that an experiment worked; one that failed counts half of it, one without a verdict none.
    """

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    relevance: _Weight = 0.5
    recency: _Weight = 0.3
    importance: _Weight = 0.2
    verdict: _Weight = 0.1
    half_life_days: Annotated[float, Gt(0)] = 30
    rrf_k: Annotated[int, Ge(1)] = 60
    lexical: _Weight = 1.0
    vector: _Weight = 0.25
    stale_runs: Annotated[int, Ge(0), Le(1000)] = 3


T = TypeVar("T", Budgets, Weights)


def served(shape: type[T], values: Any) -> T:
    """The budgets or weights that a row of the index holds.

    The defaults where it holds none or what they can't be: then another version of docmem wrote it.
    """
    hints = _HINTS[shape]
    if not isinstance(values, Mapping) or any(
        key not in hints or not _fits(value, hints[key]) for key, value in values.items()
    ):
        return shape()
    return shape(**values)


def _hints(shape: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(shape, include_extras=True)
    return {each.name: hints[each.name] for each in fields(shape)}


_HINTS: Mapping[Any, dict[str, Any]] = {shape: _hints(shape) for shape in (Budgets, Weights)}


def _fits(value: Any, hint: Any) -> bool:
    kind, *bounds = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if get_origin(kind) is dict:
        keys, values = get_args(kind)
        return isinstance(value, dict) and all(_fits(key, keys) and _fits(each, values) for key, each in value.items())
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    numbers = (int, float) if kind is float else (int,)
    return isinstance(value, numbers) and not isinstance(value, bool) and all(_within(value, each) for each in bounds)


def _within(value: float, bound: object) -> bool:
    match bound:
        case Ge(ge=int() | float() as least):
            return value >= least
        case Gt(gt=int() | float() as below):
            return value > below
        case Le(le=int() | float() as most):
            return value <= most
        case _:
            raise TypeError(f"no bound that is known here: {bound!r}")
