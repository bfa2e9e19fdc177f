"""Sentences that report an event are worth more than feelings, advice, compliments and replies."""

from support.cases import each_case

from mnemosyned.summary.events import rate_event

EVENTS = [
    "I signed up for a pottery class yesterday.",
    "My laptop crashed last week and I lost all my work.",
    "We've been rehearsing for the festival in June.",
    "Renamed `projectDir` to `hashDir` in all providers.",
    "The export worker leaked a connection for every closed pier.",
    "Wir haben gestern einen neuen Drucker gekauft.",
    "J'ai acheté une voiture hier à Lyon.",
    "Ayer compramos una mesa nueva en Graz.",
    "Вчера мы купили новый принтер для офиса.",
    "昨日、新しいプリンターを買いました。",
]
OTHERS = [
    "I love how the sea calms me down every time.",
    "You will find your way, I am so proud of you!",
    "Don't forget to take breaks and dance it out when you need to destress!",
    "That's so inspiring, it must have been amazing for you.",
    "Let me look at the file to see what it does.",
    "Taking risks is both scary and rewarding for everyone.",
    "Have you been to the new shop in Graz yet?",
    "Ich freue mich sehr, das ist toll für dich.",
]


@each_case("event", EVENTS)
def test_an_event_is_worth_more_than_any_feeling_advice_or_reply(event: str) -> None:
    assert all(rate_event(event) > rate_event(other) for other in OTHERS)


def test_a_rule_is_worth_as_much_as_a_plain_statement() -> None:
    rule = "Never delete dumps younger than 30 days."

    assert rate_event(rule, is_ruling=True) == 1.0
    assert rate_event(rule) < 1.0


def test_encouragement_is_no_rule() -> None:
    assert rate_event("Never give up on your dreams!", is_ruling=True) < 0.5


def test_an_empty_sentence_is_worth_nothing() -> None:
    assert rate_event("  ") == 0.0
