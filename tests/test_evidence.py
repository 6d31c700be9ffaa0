"""What a window bears out: who said it, and whether they meant it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmem import evidence
from docmem.model import ROLES, Turn

Said = tuple[str, str]


def window(*said: Said) -> list[Turn]:
    return [Turn(f"t{number}", role, text) for number, (role, text) in enumerate(said, start=1)]  # type: ignore[arg-type]


def user(text: str) -> Said:
    return ("user", text)


def assistant(text: str) -> Said:
    return ("assistant", text)


def tool(text: str) -> Said:
    return ("tool", text)


HELLO = user("Find me a hotel please, for the weekend.")

VALUES: list[tuple[str, str, list[Said], str]] = [
    # in so many words, or nearly
    ("budget", "mid-range", [user("We have a mid-range budget.")], "borne_out"),
    ("party", "2 adults", [user("It's for the two of us.")], "borne_out"),
    ("budget", "RM 12,000", [user("Our budget is RM 12k.")], "borne_out"),
    ("budget", "RM 12000", [user("Twelve thousand ringgit, RM.")], "borne_out"),
    ("budget", "8.000 EUR", [user("around 8000 €")], "borne_out"),
    ("phone", "+60123456789", [user("call me at 012-345 6789")], "borne_out"),
    ("diet", "vegetarian", [user("Ich bin Vegetarier.")], "borne_out"),
    ("diet", "吃素", [user("我吃素,不吃鸡蛋。")], "borne_out"),
    ("home_city", "Porto", [user("Moro no Porto.")], "borne_out"),
    ("home_city", "München", [user("ich wohne in MÜNCHEN")], "borne_out"),
    ("children", "yes", [user("We travel with our children.")], "borne_out"),
    ("plan", "Business", [user("I'm on Team."), user("No wait, I moved to the Business plan.")], "borne_out"),
    # what was asked and confirmed
    ("home_city", "Penang", [assistant("You live in Penang, right?"), user("Yes, that's right.")], "borne_out"),
    ("home_city", "Penang", [assistant("Anda tinggal di Penang?"), user("Ya, betul.")], "borne_out"),
    ("home_city", "Penang", [assistant("From Penang?"), tool("{}"), user("Yep!")], "borne_out"),
    ("home_city", "Penang", [assistant("You live in Penang?"), user("No.")], "said_by_others"),
    ("home_city", "Penang", [assistant("You live in Penang?"), user("What time is it there?")], "said_by_others"),
    ("home_city", "Penang", [assistant("You live in Penang?"), user("Yes, but not any more.")], "said_by_others"),
    ("home_city", "Penang", [assistant("Penang?"), user("A hotel, please."), user("Yes.")], "said_by_others"),
    # others alone
    ("home_city", "Penang", [tool('{"city": "Penang"}'), HELLO], "said_by_others"),
    ("home_city", "Penang", [HELLO, assistant("Since you live in Penang, try the ferry.")], "said_by_others"),
    ("home_city", "Penang", [("system", "The user lives in Penang."), HELLO], "said_by_others"),
    ("budget", "900", [tool("budget: 900"), user("What about my budget?")], "said_by_others"),
    ("diet", "vegan", [tool("diet=vegan"), user("ok thanks")], "said_by_others"),
    # guesses
    ("home_city", "Bali", [user("If I were rich I would live in Bali.")], "speculation"),
    ("home_city", "Bali", [user("Maybe we'll move to Bali.")], "speculation"),
    ("home_city", "Bali", [user("One day I'd love to live in Bali")], "speculation"),
    ("home_city", "Mallorca", [user("Si fuera rico viviría en Mallorca.")], "speculation"),
    ("home_city", "Bali", [user("Wenn ich reich wäre, würde ich in Bali leben.")], "speculation"),
    ("budget", "5000", [user("What if we had 5000 to spend?")], "speculation"),
    ("home_city", "Penang", [user("I live in Penang, maybe I'll move some day.")], "borne_out"),
    ("home_city", "Ipoh", [user("I live in Penang, maybe I'll move to Ipoh.")], "speculation"),
    # nowhere
    ("home_city", "Penang", [HELLO], "not_said"),
    ("budget", "9000", [user("What would be a good budget for this?")], "not_said"),
    ("home_city", "Penang", [], "not_said"),
    # what a person has a look at
    ("diet", "vegetarian", [user("I don't eat meat.")], "unsupported"),
    ("diet", "vegetarian", [user("I'm not a vegetarian.")], "unsupported"),
    ("diet", "vegetarian", [user("Saya tidak makan daging.")], "unsupported"),
    ("party", "2 adults", [user("My wife and I are going to the sea.")], "unsupported"),
    ("budget", "low", [user("Keep the budget as small as you can.")], "unsupported"),
    ("name", "Ana Silva", [tool("customer: Ana Silva"), user("My name is Ana.")], "unsupported"),
    ("smoker", "no", [HELLO], "unsupported"),
]


@pytest.mark.parametrize(("key", "value", "said", "finding"), VALUES)
def test_a_value_is_borne_out_by_what_the_user_says_or_confirms(
    key: str, value: str, said: list[Said], finding: str
) -> None:
    assert evidence.of_value(("attributes", key), value, window(*said)) == finding


CORE: list[tuple[str, str, list[Said], str]] = [
    ("preferred_language", "Malay", [user("Please always answer in Malay.")], "borne_out"),
    ("preferred_language", "Malay", [user("Saya nak tempah hotel.")], "borne_out"),
    ("preferred_language", "English", [HELLO], "borne_out"),
    ("preferred_language", "Spanish", [user("Can we do this in español please")], "borne_out"),
    ("preferred_language", "French", [tool("lang: French"), HELLO], "said_by_others"),
    ("preferred_language", "French", [HELLO], "unsupported"),
    ("preferred_language", "French", [user("Maybe we could try French.")], "speculation"),
    ("preferred_language", "French", [tool("lang: French"), user("ok thanks")], "said_by_others"),
    ("locale", "en-GB", [user("What colour is it?")], "borne_out"),
    ("locale", "de-AT", [tool("locale=de_AT"), HELLO], "said_by_others"),
    ("lifecycle_stage", "active", [user("We just booked the trip.")], "borne_out"),
    ("lifecycle_stage", "active", [tool("booked"), user("thanks!")], "said_by_others"),
    ("lifecycle_stage", "active", [], "not_said"),
]


@pytest.mark.parametrize(("key", "value", "said", "finding"), CORE)
def test_language_locale_and_stage_may_be_told_by_how_somebody_writes(
    key: str, value: str, said: list[Said], finding: str
) -> None:
    assert evidence.of_value((key,), value, window(*said)) == finding


STATEMENTS: list[tuple[str, list[Said], str]] = [
    ("The traveller plans Portugal in May.", [user("We plan Portugal in May.")], "borne_out"),
    ("The traveller is a vegetarian.", [assistant("Vegetarian?"), user("Yes, that's right.")], "borne_out"),
    ("The traveller doesn't eat meat.", [assistant("Do you eat meat?"), user("Never.")], "borne_out"),
    ("The traveller eats meat.", [assistant("Do you eat meat?"), user("No.")], "said_by_others"),
    ("The traveller takes the 9:30 train.", [assistant("The 9:30 or the 11:15?"), user("The first one.")], "borne_out"),
    ("The user's budget is 900.", [tool("budget 900"), user("What about my budget?")], "said_by_others"),
    ("The user is allergic to nuts.", [tool("allergic to nuts"), user("Book it for May, please.")], "said_by_others"),
    ("The user is allergic to nuts.", [assistant("You are allergic to nuts."), HELLO], "said_by_others"),
    ("The user is allergic to nuts.", [HELLO], "unsupported"),
    ("The trip begins on 2026-05-14.", [tool("2026-05-14"), user("The trip begins next Thursday.")], "borne_out"),
    ("The user wants a hotel by the sea.", [tool("hotels: 12"), user("somewhere by the sea")], "borne_out"),
]


@pytest.mark.parametrize(("text", "said", "finding"), STATEMENTS)
def test_a_statement_is_borne_out_by_the_users_turns_that_it_cites(text: str, said: list[Said], finding: str) -> None:
    turns = window(*said)
    assert evidence.of_statement(text, cited=turns, window=turns) == finding


ECHOES: list[tuple[str, str, str]] = [
    ("I eat no meat.", "Got it, vegetarian.", "The traveller is a vegetarian."),
    ("I hate layovers", "OK, I will look for direct flights.", "The traveller prefers direct flights."),
    ("we need to keep it cheap", "Understood, tight budget.", "The traveller has a tight budget."),
    ("no stairs please, my knee is bad", "Noted: step-free access.", "The traveller needs step-free access."),
    ("I can't eat wheat or barley", "Gluten intolerant, got it.", "The traveller is gluten intolerant."),
    ("planes scare me to death", "Sorry to hear about the fear of flying.", "The traveller has a fear of flying."),
    ("from KL please", "Flights from Kuala Lumpur, right.", "The traveller flies from Kuala Lumpur."),
    (
        "our people must log in through Okta",
        "So you need SAML single sign-on.",
        "The customer needs SAML single sign-on.",
    ),
    ("we got married last week", "A honeymoon trip, then.", "The traveller is planning a honeymoon trip."),
]


@pytest.mark.parametrize(("said", "echo", "text"), ECHOES)
def test_what_the_assistant_says_back_takes_nothing_away_from_what_the_user_said(
    said: str, echo: str, text: str
) -> None:
    turns = window(user("Hello!"), user(said), assistant(echo), user("Great. What next?"))
    quoted = evidence.of_statement(text, cited=turns[1:2], window=turns, quoted=True)
    both = evidence.of_statement(text, cited=turns[1:3], window=turns, quoted=True)
    bare = evidence.of_statement(text, cited=turns[1:2], window=turns)
    assert (quoted, both) == ("borne_out", "borne_out")
    assert bare in {"borne_out", "unsupported"}, "held where it can't be told, and never lost"


@pytest.mark.parametrize(
    ("said", "finding"),
    [
        ([user("I eat no meat."), assistant("Got it, vegan."), user("No, cheese is fine.")], "unsupported"),
        ([assistant("You are vegan."), user("Find me a hotel.")], "unsupported"),
        ([user("What am I?"), assistant("You are vegan.")], "unsupported"),
        ([user("Look up my diet."), tool("vegan"), assistant("You are vegan.")], "unsupported"),
        ([user("Just read it out.")], "borne_out"),
    ],
)
def test_what_others_said_first_or_looked_up_is_no_echo(said: list[Said], finding: str) -> None:
    turns = window(*said)
    cited = [turn for turn in turns if turn.role == "user"][:1]
    assert evidence.of_statement("The traveller is vegan.", cited=cited, window=turns, quoted=True) == finding


YES = [
    "obviously",
    "Obviously!",
    "👍",
    "👍🏽",
    "jo",
    "对的",
    "sim",
    "ya",
    "klar",
    "na klar!",
    "Sure thing, yes",
    "vale",
    "bien sûr",
]
NO = [
    "I do not think so", "I don't think so.", "we are fine without", "not really", "I'd rather not",
    "Nah, I'd rather not", "Absolutely not", "We'll pass", "ya no", "Honestly, no", "without, thanks", "eher nicht",
    "不用", "We are not", "Hardly.",
]  # fmt: skip


@pytest.mark.parametrize("answer", YES)
def test_a_yes_in_many_words_and_none_confirms_what_was_asked(answer: str) -> None:
    turns = window(user("We need a place."), assistant("A quiet room then?"), user(answer))
    assert evidence.of_statement("The traveller wants a quiet room.", cited=turns, window=turns) == "borne_out"
    assert evidence.heard(turns[2:]) == turns[2:]


@pytest.mark.parametrize("answer", [*NO, "we're good", "We are fine, thanks"])
def test_a_no_confirms_nothing_but_that_it_is_not_so(answer: str) -> None:
    turns = window(assistant("Do you need a cot?"), user(answer))
    for quoted in (False, True):
        found = evidence.of_statement("The traveller needs a cot.", cited=turns, window=turns, quoted=quoted)
        assert found in {"said_by_others", "unsupported"}
    assert evidence.answered(turns[1], turns) is None


def test_a_no_bears_out_that_it_is_not_so() -> None:
    for answer in ("not really", "I do not think so", "we are fine without", "I'd rather not"):
        turns = window(assistant("Do you need a cot?"), user(answer))
        found = evidence.of_statement("The traveller doesn't need a cot.", cited=turns[1:], window=turns)
        assert found == "borne_out", answer


@pytest.mark.parametrize(
    ("asked", "text", "is_borne_out"),
    [
        ("You love opera, so I booked tickets. Do you need a cot?", "The traveller loves opera.", False),
        ("You love opera, so I booked tickets. Do you need a cot?", "The traveller needs a cot.", True),
        ("Do you need a cot? You love opera.", "The traveller loves opera.", False),
        ("Two adults, a quiet room. Is that right?", "The traveller wants a quiet room.", True),
        ("A quiet room at 120 euros. Shall I book it?", "The quiet room costs 120 euros.", True),
        ("You live in Penang, so you like the sea.", "The traveller lives in Penang.", True),
    ],
)
def test_a_yes_confirms_what_was_asked_and_not_what_was_claimed_beside_it(
    asked: str, text: str, is_borne_out: bool
) -> None:
    turns = window(assistant(asked), user("Yes"))
    assert (evidence.of_statement(text, cited=turns, window=turns) == "borne_out") is is_borne_out


def test_a_thumb_after_a_claim_is_no_more_than_ok() -> None:
    turns = window(assistant("Since you live in Penang, take the ferry."), user("👍"))
    assert evidence.of_statement("The traveller lives in Penang.", cited=turns, window=turns) != "borne_out"


def test_what_is_changed_needs_no_evidence_again_and_a_quote_stands_for_other_words() -> None:
    turns = window(user("Make it three of us."))
    wider = "The traveller's family trip to Lisbon is for three."
    assert evidence.of_statement(
        wider, cited=turns, window=turns, known=["The traveller's family trip to Lisbon."]
    ) == ("borne_out")
    assert evidence.of_statement("The user is frugal.", cited=turns, window=turns) == "unsupported"
    assert evidence.of_statement("The user is frugal.", cited=turns, window=turns, quoted=True) == "borne_out"


def test_a_turn_of_a_user_elsewhere_in_the_window_is_not_others() -> None:
    turns = window(user("My loyalty number is 4711."), user("A late train is best."))
    found = evidence.of_statement("The traveller's number is 4711.", cited=turns[1:], window=turns)
    assert found == "unsupported", "said by the user, though not in the turn that is cited"


@pytest.mark.parametrize(
    ("said", "is_one"),
    [
        ("If I were rich I would travel to Japan.", True),
        ("Perhaps we travel to Japan.", True),
        ("I wish we could travel to Japan.", True),
        ("We travel to Japan, and maybe to Korea.", False),
        ("We travel to Japan.", False),
        ("I sent in the plan for Japan to see how others might like it.", False),
        ("如果我有钱就去 Japan。", True),
    ],
)
def test_a_guess_is_no_statement(said: str, is_one: bool) -> None:
    turns = window(user(said))
    assert evidence.is_speculation("The user travels to Japan.", cited=turns, quote=None) is is_one
    assert not evidence.is_speculation("The user might travel to Japan.", cited=turns, quote=None)


@pytest.mark.parametrize(
    ("quote", "stands"),
    [
        ("no stairs please… my knee is bad", True),
        ("No stairs ... my knee is BAD.", True),
        ("no stairs [...] bad", True),
        ("…my knee is bad", True),
        ("my knee is bad… no stairs", False),
        ("no stairs… my hip is bad", False),
        ("…", False),
        ("", False),
    ],
)
def test_a_quote_may_leave_something_out_but_not_turn_it_round(quote: str, stands: bool) -> None:
    (turn,) = window(user("Hi! No stairs please, as ever, since my knee is bad."))
    assert evidence.holds(turn, quote) is stands


@given(
    st.lists(st.tuples(st.sampled_from(ROLES), st.text(max_size=30) | st.from_regex(r"[0-9., k]{1,9}")), max_size=4),
    st.text(max_size=30),
    st.sampled_from(["attributes", "locale", "preferred_language", "lifecycle_stage"]),
)
def test_whatever_is_said_there_is_an_answer_and_without_a_user_it_is_no(
    said: list[Said], text: str, first: str
) -> None:
    turns = window(*said)
    found = {
        evidence.of_value((first, "diet") if first == "attributes" else (first,), text, turns),
        evidence.of_statement(text, cited=turns, window=turns),
    }
    assert found <= {"borne_out", "said_by_others", "speculation", "not_said", "unsupported"}
    if not evidence.heard(turns):
        assert evidence.of_value((first, "diet"), text, turns) in {"said_by_others", "not_said"}
