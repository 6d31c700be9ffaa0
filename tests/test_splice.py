from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmem import splice, strictyaml
from docmem.errors import FormatError

HAND = """\
# Aisyah, see ticket 4711
label: Aisyah   # from the Penang office

preferred_language:   'ms'
attributes:
  # people change these
  home_city: "Kuala Lumpur"
  budget:    RM 6,000    # for two
pinned: [ home_city ]
notes: |
  first line
  second line
# the end
"""


def changed_lines(before: str, after: str) -> list[str]:
    old = before.splitlines()
    return [line for line in after.splitlines() if line not in old]


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        (("label",), "Siti", "label: Siti   # from the Penang office"),
        (("preferred_language",), "en", "preferred_language:   en"),
        (("attributes", "budget"), "RM 7,000", '  budget:    "RM 7,000"    # for two'),
        (("attributes", "diet"), "vegetarian", "  diet: vegetarian"),
        (("lifecycle_stage",), "lead", "lifecycle_stage: lead"),
        (("notes",), "short", "notes: short"),
    ],
)
def test_one_change_is_one_line_and_comments_stay(path: tuple[str, ...], value: str, line: str) -> None:
    after = splice.edit(HAND, {path: value})
    assert changed_lines(HAND, after) == [line]
    assert [text for text in HAND.splitlines() if "#" in text and text.split("#")[0].strip() == ""] == [
        text for text in after.splitlines() if "#" in text and text.split("#")[0].strip() == ""
    ]


def test_setting_what_stands_there_changes_nothing() -> None:
    assert splice.edit(HAND, {("label",): "Aisyah", ("attributes", "home_city"): "Kuala Lumpur"}) == HAND


def test_a_key_can_be_taken_out() -> None:
    after = splice.edit(HAND, {("preferred_language",): splice.DELETE, ("attributes", "budget"): splice.DELETE})
    assert after == HAND.replace("preferred_language:   'ms'\n", "").replace("  budget:    RM 6,000    # for two\n", "")


def test_what_cannot_be_read_is_never_rewritten() -> None:
    with pytest.raises(FormatError):
        splice.edit('description: "said "hi" twice"\n', {("description",): "x"})


KEYS = st.text("abcde", min_size=1, max_size=2)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**6),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
)
STYLES = st.sampled_from(["block", "flow", "comment"])


def _layout(values: dict[str, Any], style: str) -> str:
    if style == "flow":
        return splice.render(values) + "\n"
    lines = []
    for key, value in values.items():
        if isinstance(value, dict) and value:
            lines += [f"{key}:"] + [f"    {name}: {splice.render(item)}" for name, item in value.items()]
        else:
            lines.append(f"{key}: {splice.render(value)}")
        if style == "comment":
            lines += ["", "# a note"]
    return "\n".join(lines) + "\n"


@given(
    st.dictionaries(KEYS, SCALARS | st.dictionaries(KEYS, SCALARS, max_size=3), max_size=4),
    STYLES,
    st.dictionaries(st.tuples(KEYS) | st.tuples(KEYS, KEYS), SCALARS | st.just(splice.DELETE), min_size=1, max_size=3),
)
def test_an_edit_sets_what_was_asked_and_nothing_else(
    values: dict[str, Any], style: str, changes: dict[tuple[str, ...], Any]
) -> None:
    text = _layout(values, style)
    expected: dict[str, Any] = {key: dict(item) if isinstance(item, dict) else item for key, item in values.items()}
    for path, value in changes.items():
        parent = expected
        for key in path[:-1]:
            if not isinstance(parent.get(key), dict):
                parent[key] = {}
            parent = parent[key]
        if value is splice.DELETE:
            parent.pop(path[-1], None)
        else:
            parent[path[-1]] = value
    after = splice.edit(text, changes)
    assert strictyaml.load_mapping(after) == expected
    if style == "comment" and after != text:
        assert after.count("# a note") == text.count("# a note") or splice.DELETE in changes.values()
