"""`docmem.yaml`: what a tenant's agents remember, and by which policies."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from docmem import pii
from docmem.document import decode, refuse_conflict_markers
from docmem.errors import FormatError
from docmem.languages import Language, configuration, is_language
from docmem.layout import FORMAT
from docmem.model import Kind
from docmem.pii import COUNTRIES, Action
from docmem.schema import Duration, Shape, Text, read
from docmem.serving import RETENTION, Budgets, Weights
from docmem.strictyaml import load_mapping


class _Closed(Shape):
    """A policy: a key that isn't known is a typing error that would switch the policy off in silence."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Example(Shape):
    """A few-shot example of a topic: what the user says, and what is worth remembering of it (or nothing)."""

    says: Text
    memory: Text | None = None


class Topic(Shape):
    """Something an agent declares worth remembering."""

    name: Text
    description: Text = ""
    kind: Kind | None = None
    examples: tuple[Example, ...] = ()


class Attribute(Shape):
    """A profile attribute that an agent declares."""

    key: Text
    description: Text = ""
    example: Text = ""


class Agent(Shape):
    """A named assistant of the tenant."""

    topics: tuple[Topic, ...] = ()
    attributes: tuple[Attribute, ...] = ()


class Retention(_Closed):
    """How long after `valid_from` a memory is still recalled; None: always."""

    episode: Duration = RETENTION["episode"]
    preference: Duration = RETENTION["preference"]
    fact: Duration = RETENTION["fact"]
    decision: Duration = RETENTION["decision"]


class Admission(_Closed):
    """Bounds of what one window may do."""

    max_operations: int = Field(default=40, ge=1, le=1000)
    delete_share: float = Field(default=0.5, ge=0, le=1)
    delete_span: Duration = timedelta(days=30)
    min_confidence: float = Field(default=0.3, ge=0, le=1)
    window_turns: int = Field(default=200, ge=1, le=10_000)
    window_characters: int = Field(default=60_000, ge=1_000, le=1_000_000)
    duplicate_cosine: float | None = Field(default=None, gt=0, le=1)


class Pii(_Closed):
    """What becomes of personal data that would be kept. `countries`: whose national ids are looked for (none: all)."""

    email: Action = "hold"
    phone: Action = "hold"
    bank_account: Action = "hold"
    address: Action = "allow"
    national_id: Action = "allow"
    countries: tuple[Text, ...] = ()

    @field_validator("countries")
    @classmethod
    def _known(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        lower = tuple(value.lower() for value in values)
        unknown = [value for value in lower if value not in COUNTRIES]
        if unknown:
            raise ValueError(f"no national id of {unknown[0]!r} is known; known are {', '.join(sorted(COUNTRIES))}")
        return lower

    def strictest(self, text: str) -> Action:
        """What the policy says of a text."""
        return pii.strictest(text, self._actions(), countries=self.countries)

    def redacted(self, text: str) -> str:
        """`text` without what the policy takes out."""
        return pii.redacted(text, self._actions(), countries=self.countries)

    def _actions(self) -> dict[pii.Kind, Action]:
        return {kind: getattr(self, kind) for kind in pii.KINDS}


class Policies(_Closed):
    """What may be kept, how long, and how much of it is served."""

    admission: Admission = Admission()
    pii: Pii = Pii()
    review: Literal["held", "all"] = "held"
    review_expires: Duration = timedelta(days=30)
    consent: Literal["assumed", "required"] = "assumed"
    retention: Retention = Retention()
    budgets: Budgets = Budgets()
    weights: Weights = Weights()


class TenantConfig(Shape):
    """A tenant's `docmem.yaml`."""

    format: int
    language: Language = "simple"
    agents: dict[str, Agent] = Field(default_factory=dict)
    policies: Policies = Policies()

    @field_validator("language", mode="before")
    @classmethod
    def _by_tag(cls, value: Any) -> Any:
        """`pt-BR` is portuguese, a tag that Postgres has no words of `simple`; a name it hasn't is a mistake."""
        return configuration(value) if isinstance(value, str) and is_language(value) else value

    @model_validator(mode="before")
    @classmethod
    def _empty_sections(cls, values: Any) -> Any:
        # A section whose lines are all commented out reads as null and means its defaults.
        if isinstance(values, dict):
            return {key: item for key, item in values.items() if item is not None}
        return values

    def agent(self, name: str) -> Agent:
        """The agent called `name`; one that isn't declared has no topics."""
        return self.agents.get(name, Agent())


def parse_config(data: bytes) -> TenantConfig:
    """Read `docmem.yaml`. Raises `FormatError`, also where its format is newer than this version."""
    text, _ = decode(data)
    refuse_conflict_markers(text, first_line=1)
    values: Mapping[str, Any] = load_mapping(text)
    config = read(TenantConfig, values, source=text)
    if config.format != FORMAT:
        raise FormatError(
            f"format: this docmem reads format {FORMAT}, and the repo says {config.format}",
            code="format_version",
            hint="upgrade docmem",
        )
    return config
