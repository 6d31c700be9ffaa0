import pytest

from docmem import names
from docmem.errors import InvalidName


@pytest.mark.parametrize("name", ["a", "acme", "0", "a-b", "a" * 63, "acme-2"])
def test_a_tenant_is_named_by_lowercase_letters_digits_and_dashes(name: str) -> None:
    assert names.tenant_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "A", "-a", "a" * 64, "a_b", "a.b", "a/b", "..", "acme\n", "acme ", "ä", "a\0", "%", "acme%"]
)
def test_any_other_tenant_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidName):
        names.tenant_name(name)


def test_a_subject_is_a_key_or_hashed_as_an_id() -> None:
    key = names.subject_of_id("acme", "ana")
    assert names.subject_key("acme", key) == key
    assert names.subject_key("acme", "ana") == key
    assert names.subject_key("acme", key.upper()) != key.upper()


def test_phone_and_id_of_equal_text_are_different_people() -> None:
    assert names.subject_of_phone("acme", "+60123") != names.subject_of_id("acme", "+60123")


def test_the_same_person_has_another_key_in_another_tenant() -> None:
    assert names.subject_of_id("acme", "ana") != names.subject_of_id("globex", "ana")


def _id(**changes: object) -> str:
    values: dict[str, object] = {
        "tenant": "acme", "subject": "s", "thread": "t", "evidence": ["t1", "t2"], "kind": "fact", "text": "Likes tea"
    }  # fmt: skip
    return names.memory_id(b"key", **(values | changes))  # type: ignore[arg-type]


def test_a_replayed_create_gets_the_same_id() -> None:
    assert _id() == _id(evidence=["t2", "t1"]) == _id(text="likes  TEA ")


@pytest.mark.parametrize(
    "change", [{"tenant": "b"}, {"thread": "u"}, {"evidence": ["t3"]}, {"kind": "episode"}, {"text": "likes coffee"}]
)
def test_a_memory_from_elsewhere_gets_another_id(change: dict[str, object]) -> None:
    assert _id(**change) != _id()


def test_an_id_cannot_be_computed_without_the_secret() -> None:
    other = names.memory_id(b"other", tenant="acme", subject="s", thread="t", evidence=["t1"], kind="fact", text="x")
    assert other != names.memory_id(
        b"key", tenant="acme", subject="s", thread="t", evidence=["t1"], kind="fact", text="x"
    )


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "../x", "a/../b", "a//b", "./a", ".git/config", "a/.GIT/x", "a/.git ", "git~1/x", "a\\b",
     "a\0b", "a/.g\u200cit/x", "x" * 1025, "a/" + "ä" * 128, "a/caf\udce9.md"],
)  # fmt: skip
def test_a_path_that_leaves_the_repo_or_touches_git_is_refused(path: str) -> None:
    with pytest.raises(InvalidName):
        names.safe_path(path)


@pytest.mark.parametrize("path", ["a.md", "knowledge/Ärger 记录.md", "a/b\tc.md", "-x.md", "knowledge/.gitignore.md"])
def test_odd_but_harmless_paths_pass(path: str) -> None:
    assert names.safe_path(path) == path


@pytest.mark.parametrize(
    ("text", "slug"),
    [("Ana likes TEA!", "ana-likes-tea"), ("日本", "memory"), ("Ärger", "arger"), ("x" * 80, "memory")],
)
def test_a_slug_is_short_plain_ascii(text: str, slug: str) -> None:
    assert names.slug(text) == slug
    assert len(names.slug("word " * 100)) <= 60


@pytest.mark.parametrize(
    "text",
    ["The traveller likes kites", "the traveller  likes kites!", "The user likes kites.", "Traveller likes kite."],
)
def test_a_statement_said_a_little_differently_has_one_hash(text: str) -> None:
    first = names.statement_hash(b"key", "s", "The traveller likes kites.")
    assert names.statement_hash(b"key", "s", text) == first
    assert names.statement_hash(b"key", "s", text.replace("like", "hate")) != first


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user owes the client money.", "The client owes the user money."),
        ("The guide likes the user.", "The user likes the guide."),
        ("The user cooks for Ana.", "The user cooks with Ana."),
        ("The user told him.", "The user told her."),
    ],
)
def test_who_does_what_to_whom_is_said_differently(one: str, other: str) -> None:
    assert names.statement_hash(b"key", "s", one) != names.statement_hash(b"key", "s", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user is a vegan.", "The user keeps a vegan diet."),
        ("The user is vegetarian.", "The user doesn't eat meat."),
        ("The user is planning a trip.", "The user plans a trip."),
        ("The user flies to Rome in May.", "In May, the user flies to Rome."),
        ("The user has a peanut allergy.", "The user is allergic to peanuts."),
    ],
)
def test_what_was_taken_back_is_known_in_other_words_that_mean_the_same(one: str, other: str) -> None:
    assert names.statement_hash(b"key", "s", one) == names.statement_hash(b"key", "s", other)


def test_a_contraction_says_what_its_words_say() -> None:
    assert names.said("The user doesn’t eat pork.") == names.said("the user does not eat pork")
    assert names.said("The user can't swim.") == names.said("The user cannot swim")
