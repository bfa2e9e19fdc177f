"""Extractive summaries: which statements stay, and how lines read."""

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st
from support.cases import each_case
from support.fakes import said_in_turn

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.extract import CHARS_MAX, CHARS_MIN, extract
from mnemosyned.summary.statements import (
    rate_event,
    refers_back,
    remove_opener,
    shorten_at_clause,
)

NINE = datetime(2026, 3, 3, 9, tzinfo=UTC)
RATIO = 1 / 3


group = partial(said_in_turn, since=NINE)


def size(memories: Sequence[MemoryRecord]) -> int:
    return sum(len(memory.content) for memory in memories)


FILE = Path(__file__).parents[1] / "support" / "datasets" / "small_groups.toml"
GROUPS = tomllib.loads(FILE.read_text("utf-8"))
MEMORIES = {name: group(*map(tuple, case["memories"])) for name, case in GROUPS.items()}
DEBUGGING, NOTES, RENTAL = (MEMORIES[name] for name in ("debugging", "notes", "rental"))


@each_case("name", MEMORIES)
def test_a_small_group_keeps_values_decisions_and_orders_and_never_grows(
    name: str,
) -> None:
    """It leaves out small talk, and no keyword is a title or a currency alone."""
    kept = extract(MEMORIES[name], ratio=RATIO)
    searched = "\n".join([kept.text, *kept.index_terms])
    expected, left_out = (GROUPS[name].get(key, []) for key in ("kept", "left_out"))

    assert [one for one in expected if one not in searched] == []
    assert [one for one in left_out if one in kept.text] == []
    assert {"EUR", "Mrs", "Dr", "Frau", "GB", "%"}.isdisjoint(kept.index_terms)
    most = max(CHARS_MIN, size(MEMORIES[name]) * RATIO)
    assert CHARS_MIN * 0.45 <= len(kept.text) <= most


@each_case(("sentence", "leans"), [
    ("Il numero della polizza è G-77120", False), ("il ramipril resta 5", False),
    ("Il arrive avec les enfants", True), ("Ma soeur arrive lundi avec le train", False),
    ("Ma il treno non è arrivato", True), ("En noviembre cambiamos de banco", False),
    ("En wij gaan met de trein naar huis", True), ("He quit", True), ("This repo is the shop", False),
])  # fmt: skip
def test_a_word_refers_back_only_in_its_own_language(
    sentence: str, *, leans: bool
) -> None:
    assert refers_back(sentence) == leans
    assert leans or remove_opener(sentence) == sentence


def test_no_sentence_is_cut_before_what_changed_it() -> None:
    stale = "alerts/checkout.yaml still says 1.2 s"

    assert not shorten_at_clause(f"{stale}; I changed it to 900 ms.", 45)
    assert shorten_at_clause(f"{stale}; the page is unchanged.", 45) == f"{stale}."


def test_a_sentence_whose_verb_would_come_first_keeps_its_opener() -> None:
    for sentence in ("Dann wird es nicht Mittwoch.", "Dan komt hij morgen"):
        assert remove_opener(sentence) == sentence


def test_an_agent_that_remarks_on_something_else_says_less() -> None:
    remark = "kafka-2 is at 38 % now."
    memories = group(
        ("user", "put the retention to 5 days and grow the disk to 1.5 TB"),
        ("assistant", "The retention is 5 days, and the volume claim is 1.5 TB."),
        ("user", "how many errors?"),
        ("assistant", "0.3 % at 03:20."),
        ("user", "i applied it, and everything came up again"),
        ("assistant", remark),
        ("user", "we tried consolidation last month, it killed our batch nodes"),
    )

    kept = extract(memories, ratio=RATIO).text

    assert "5 days" in kept
    assert remark not in kept
    assert "Ran" not in kept  # a share is no prompt of a shell


def test_a_masked_secret_gives_its_sentence_no_worth() -> None:
    memories = group(
        ("user", "The service listens on port 8443, and amounts are whole cents."),
        ("user", "Our staging key is [secret:api_key], put it in the file."),
        ("user", "Lena owns the finance side, she signs off on every refund."),
    )

    kept = extract(memories, ratio=RATIO)

    assert "8443" in kept.text
    assert "Lena" in kept.text
    assert "secret:" not in "".join([kept.text, *kept.index_terms])


def test_a_sentence_too_long_for_its_room_gives_its_first_clauses() -> None:
    memories = group(
        "Decision: the archive moves to Malmö on 4 May with the Rask lorry, after which all of us "
        "will certainly need a long rest and a good deal of time to find our things again, as the "
        "last time showed, when half of the boxes stood in the corridor for the whole summer.",
        "Fine with me, I did not really like the old rooms that much anyway to be honest with you.",
        "Same here, they were rather dark, and the stairs were steep, and it was always cold too.",
    )

    first = extract(memories, ratio=RATIO).lines[0]

    assert first == "Decision: the archive moves to Malmö on 4 May with the Rask lorry."


def test_a_repeated_sentence_is_kept_once() -> None:
    lines = extract(NOTES, ratio=0.6).lines

    assert sum("PostgreSQL" in line for line in lines) == 1


def test_the_speaker_is_named_where_it_changes_and_only_if_there_are_several() -> None:
    several = extract(DEBUGGING, ratio=RATIO).lines
    alone = extract([replace(memory, role="user") for memory in NOTES], ratio=0.6).lines

    assert several[0].startswith(("user: ", "assistant: "))
    assert not any(line.startswith("user: ") for line in alone)


def test_sentences_keep_their_order() -> None:
    lines = extract(RENTAL, ratio=0.6).lines
    everything = "\n".join(memory.content for memory in RENTAL)
    found = [everything.find(line[-20:]) for line in lines]

    assert len(lines) > 2
    assert -1 not in found
    assert found == sorted(found)


def test_index_terms_are_the_days_and_words_that_the_lines_lack() -> None:
    kept = extract(DEBUGGING, ratio=RATIO)
    everything = " ".join([*(memory.content for memory in DEBUGGING), "2 March 2026"])

    assert kept.index_terms[0] == "Tue 3 March 2026"
    for keyword in kept.index_terms[1:]:
        assert all(word.lower() in everything.lower() for word in keyword.split())
        assert not any(keyword in line.split() for line in kept.lines)


def test_yesterday_is_resolved_where_it_was_said() -> None:
    memories = group(
        "The backup of atlas failed yesterday.", "Nothing else happened. " * 20
    )
    early = [replace(memory, created_at=NINE.replace(hour=23)) for memory in memories]
    tokyo = timezone(timedelta(hours=9))

    assert "yesterday (2 March 2026)" in extract(early, ratio=RATIO).text
    assert "yesterday (3 March 2026)" in extract(early, ratio=RATIO, zone=tokyo).text


def test_an_important_memory_wins_over_its_equal() -> None:
    plain = "The {} service listens on its own port and restarts after a crash."
    memories = group(*map(plain.format, ("alpha", "bravo", "delta", "gamma")))
    memories[2] = replace(memories[2], importance=1.0)

    assert "delta" in extract(memories, ratio=RATIO).lines[0]


def test_a_group_too_short_to_summarise_is_kept_as_far_as_it_fits() -> None:
    memories = group("The server is called atlas.")

    assert extract(memories, ratio=RATIO).text == "The server is called atlas."


def test_chinese_sentences_are_selected_whole() -> None:
    memories = group(
        "今天我们讨论了数据库迁移的计划。最终决定使用PostgreSQL 16。迁移时间定在4月12日晚上十点。",
        "王芳负责编写迁移脚本，李雷负责验证数据。如果失败，必须在三十分钟内回滚。大家都同意了。",
        "会议还讨论了夏季团建，大家想去杭州西湖。预算是五万元。没有做出最后的决定。以后再说吧。"
        * 4,
    )

    lines = extract(memories, ratio=RATIO).lines

    assert lines
    assert all(line.endswith(("。", "…")) for line in lines)


CONTENTS = st.lists(
    st.text() | st.text(alphabet="ab1. \n`\"'?。😀", max_size=600), min_size=1
)


@pytest.mark.thorough
@given(CONTENTS, st.sampled_from(["", "user", "a:b\n"]))
@example([" \n\t", ""], "")
@example(["😀😀😀", "🎉"], "")
@example(["The lantern number 7 burns in house Nightfall. " * 20_000], "")
@example(
    [f"The lantern number {at} burns in house {at * 7}." for at in range(1_500)], ""
)
@example(["lorem%20ipsum" * 3_000], "")
def test_odd_content_neither_raises_nor_grows(contents: list[str], role: str) -> None:
    memories = group(
        *((role if at % 2 else "x", one) for at, one in enumerate(contents))
    )

    kept = extract(memories, ratio=RATIO)

    assert len(kept.text) <= max(size(memories) * RATIO, min(size(memories), CHARS_MIN))
    assert len(kept.text) <= CHARS_MAX
    assert bool(kept.text) == any(content.strip() for content in contents)
    assert kept == extract(memories, ratio=RATIO)


def lines_of(*said: str | tuple[str, str], ratio: float = 0.5) -> tuple[str, ...]:
    return extract(group(*said), ratio=ratio).lines


FILLER = (
    ("Jo", "The weather stayed grey the whole morning, and nobody felt like going out."),
    ("Ines", "People walked along the river, as they do whenever the sun comes back."),
)  # fmt: skip


@each_case(("said", "shown", "hidden"), [
    ([("Jo", "It cost 1,890 EUR at the dealer in Graz."),
      ("Ines", "The Zebra ZC300 is at the front desk. It prints 180 badges an hour.")],
     "Ines: The Zebra ZC300 is at the front desk. It prints 180 badges an hour.", "1,890"),
    ([("Jo", "Season opens on 3 April. He prefers calls after 14:00, +39 040 555."),
      ("Jo", "Call with Jonas Berg on Monday. He has 184 berths, A to H.")],
     "Call with Jonas Berg on Monday. He has 184 berths, A to H.", "He prefers"),
    ([("Jo", "Er kostet 1.890 EUR bei Hansen in Graz."),
      ("Ines", "Der Drucker Zebra ZC300 steht am Empfang im zweiten Stock.")], "ZC300", "1.890"),
])  # fmt: skip
def test_a_sentence_that_leans_on_the_one_before_comes_with_it_or_not_at_all(
    said: list[tuple[str, str]], shown: str, hidden: str
) -> None:
    text = "\n".join(lines_of(*said, *FILLER))

    assert shown in text
    assert hidden not in text


def test_each_line_names_its_speaker_where_several_speak() -> None:
    lines = lines_of(
        ("Jo", "The lease of the workshop in Linz ends on 30 June 2026."),
        ("Jo", "Rent is 640 EUR a month, and the deposit was 1,280 EUR."),
        ("Ines", "Thanks, that is good to know!"),
        ratio=1.0,
    )

    assert lines
    assert all(line.startswith("Jo: ") for line in lines)


@each_case(("said", "lines"), [
    ([("Jo", "By the way: I prefer the train to Linz, never the bus on Fridays."),
      ("Jo", "The train to Linz leaves at 07:42 from platform 4."), ("Jo", "Morning!")],
     ("Jo: I prefer the train to Linz, never the bus on Fridays.",
      "The train to Linz leaves at 07:42 from platform 4.")),
    ([("Jo", "Well, but the invoice RE-118 over 460 EUR is paid."),
      ("Ines", "Hey Jo, the parcel 7788 arrived in Linz at 09:15."),
      ("Ines", "Dear Ms. Weiss, the quote Q-26-0388 lapses on 31 March.")],
     ("Jo: The invoice RE-118 over 460 EUR is paid.",
      "Ines: The parcel 7788 arrived in Linz at 09:15.",
      "Ines: The quote Q-26-0388 lapses on 31 March.")),
])  # fmt: skip
def test_a_line_names_who_says_i_and_leaves_out_interjections_and_calls_by_name(
    said: list[tuple[str, str]], lines: tuple[str, ...]
) -> None:
    assert lines_of(*said, ratio=1.0) == lines


@each_case("empty", [
    "Hi Mel! Good to see you!", "Thank you so much!", "(laughs and waves at the camera)",
    "160 EUR, 142 EUR, 9 minutes, Bella", "The steps are as follows:",
    "```\nmake install PREFIX=/opt/lume-7\n```",
])  # fmt: skip
def test_what_says_nothing_alone_is_no_line(empty: str) -> None:
    said = "The boiler of the house in Graz was repaired on 14 April for 1,890 EUR."
    lines = lines_of(("Jo", empty), ("Jo", said), *FILLER, ratio=0.9)

    assert any(said in line for line in lines)
    assert not any(part in "\n".join(lines) for part in empty.split("\n"))


def test_records_become_lines_that_stand_for_them() -> None:
    runs = [
        ("ci", f"Run 88{at} on main passed: 4{at} passed, 3 skipped in 3 min 15 s.")
        for at in range(10, 22)
    ]
    lines = lines_of(*runs, ("Jo", "The release of 1.8.0 is planned for 14 April."))

    assert len(lines) < 6
    assert any("12 " in line for line in lines)


# ------------------------------------------- events are worth more than feelings


EVENTS = [
    "I signed up for a pottery class yesterday.",
    "My laptop crashed last week and I lost all my work.",
    "We've been rehearsing for the festival in June.",
    "Renamed `projectDir` to `hashDir` in all providers.",
    "The export worker leaked a connection for every closed pier.",
    "Wir haben gestern einen neuen Drucker gekauft.", "J'ai acheté une voiture hier à Lyon.",
    "Ayer compramos una mesa nueva en Graz.", "Вчера мы купили новый принтер для офиса.",
    "昨日、新しいプリンターを買いました。",
]  # fmt: skip
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


@each_case(("more", "less"), [
    ("On signe le bail le 29 septembre.", "On signe le bail chez Marianne."),
    ("De familiedag is op 7 november.", "De familiedag is op de camping."),
    ("The demo is on 29 sept in Graz.", "The demo is on its way in Graz."),
    ("L'agence a accepté le dossier.", "L'agence va accepter le dossier."),
    ("On visite la maison en mai à Rezé.", "Tu visites la maison en mai à Rezé."),
    ("Mañana abre la panadería nueva.", "Prueba la panadería nueva mañana."),
    ("Paso un correo para Marcos mañana.", "Pásame un correo para Marcos mañana."),
    ("shap plots for the top features, pdf", "shap plots for the top features pls, pdf"),
    ("the wine is in the wool carpet", "how do i get wine out of the carpet"),
])  # fmt: skip
def test_a_dated_event_is_worth_more_and_a_request_less(more: str, less: str) -> None:
    assert rate_event(more) > rate_event(less)


def test_a_rule_is_worth_as_much_as_a_plain_statement() -> None:
    rule = "Never delete dumps younger than 30 days."

    assert rate_event(rule, is_ruling=True) == 1.0
    assert rate_event(rule) < 1.0
    assert rate_event("Never give up on your dreams!", is_ruling=True) < 0.5
    assert rate_event("  ") == 0.0


@each_case("farewell", ["see you tomorrow", "bis morgen", "hasta mañana", "à demain"])
def test_the_tomorrow_of_a_farewell_is_no_plan(farewell: str) -> None:
    assert rate_event(f"My head hurts, {farewell}!") == rate_event("My head hurts")
    assert rate_event(farewell) == 0.0


def test_a_first_letter_in_lower_case_takes_nothing_from_a_message() -> None:
    typed = "the printer moved to room 12 yesterday"

    assert rate_event(typed, is_message=True) > rate_event(typed)
