"""Statements that answer nothing: what else is remembered of somebody, so that a question has to find its own. Seeded.

They share everyday words with questions (hotel, office, budget, Monday) and none of their answers.
"""

from __future__ import annotations

import random

_PLACES = ("Graz", "Bergen", "Ghent's old port", "Adelaide", "Bologna", "Osaka", "Valencia", "Riga", "Cork", "Aarhus")
_WHO = ("a cousin", "an old colleague", "the upstairs neighbour", "a school friend", "the choir leader", "an aunt")
_DAYS = ("Monday", "Wednesday", "Saturday", "Sunday")
_THINGS = ("bicycle", "violin", "sewing machine", "camera", "tent", "kayak", "bread oven", "bookshelf", "telescope")
_PATTERNS = (
    "In {place} {who} found a hotel with a good breakfast.",
    "{who} talked about a trip to {place} for half an hour.",
    "{who} spent the whole budget for the garden on a {thing}.",
    "The {thing} that {who} lent out came back on a {day}.",
    "There is a museum in {place} that {who} calls overrated.",
    "{who} reads the news on a {day} only.",
    "The office party is on a {day}, and {who} brings a {thing}.",
    "{who} wants to sell a {thing} before moving to {place}.",
    "On a {day} {who} repaired the {thing} in the yard.",
    "{who} says that the weather in {place} suits nobody.",
    "The new {thing} of {who} stands in the hallway.",
    "{who} learned to cook in {place} and talks of it every {day}.",
)


_FRESH = 3_000
"""Draws after which most of what the patterns can say has been said."""


def statements(seed: str, count: int) -> list[str]:
    """So many different ones; the same seed gives the same. Beyond what the patterns have, numbers differ."""
    chance = random.Random(seed)
    found: dict[str, None] = {}
    tries = 0
    while len(found) < count:
        text = chance.choice(_PATTERNS).format(
            place=chance.choice(_PLACES),
            who=chance.choice(_WHO),
            day=chance.choice(_DAYS),
            thing=chance.choice(_THINGS),
        )
        tries += 1
        again = f" (heard {tries} times)" if tries > _FRESH else ""
        found[text[0].upper() + text[1:-1] + f"{again}."] = None
    return list(found)
