from datetime import UTC, datetime

from hypothesis import given, strategies as st
from support.cases import each_case

from mnemosyned.text.dates import formatting as dates
from mnemosyned.text.sentences import SENTENCE_CHARS_MAX, split_sentences
from mnemosyned.text.terms import light_stem
from mnemosyned.text.tokens import (
    AMOUNT_CHARS_MAX,
    CODE_PARTS_MAX,
    RULING,
    TokenKind,
    emphasis_factor,
    find_keywords,
    tokenize,
)

CODE = "ab-" * CODE_PARTS_MAX + "7-c"
AMOUNT = "1," * (AMOUNT_CHARS_MAX // 2 - 1) + "10円"
SAID = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def split(text: str) -> list[str]:
    return [sentence for sentence, _ in split_sentences(text)]


@each_case(("text", "sentences"), [
    ('It works. Does it? "Yes!" She left… then came back',
     ["It works.", "Does it?", '"Yes!"', "She left…", "then came back"]),
    ("Ask Dr. Weber, e.g. J. Weber, at 10.4.2.17. 2. Call v1.2.3 of the tool.",
     ["Ask Dr. Weber, e.g. J. Weber, at 10.4.2.17.", "2. Call v1.2.3 of the tool."]),
    ("你好。今天开会！对吗？", ["你好。", "今天开会！", "对吗？"]),
    ("彼は「済んだ。」と言った。「はい。」とりあえず進む。",
     ["彼は「済んだ。」と言った。", "「はい。」", "とりあえず進む。"]),
    ("회의는 2026. 5. 4. 오전이다. 끝.", ["회의는 2026. 5. 4. 오전이다.", "끝."]),
    ("A queue on SELECT … FOR UPDATE. I came ... and left.",
     ["A queue on SELECT … FOR UPDATE.", "I came ... and left."]),
    ("It is on port 8443. Call me on the 2. May.", ["It is on port 8443.", "Call me on the 2. May."]),
])  # fmt: skip
def test_a_text_splits_at_its_sentence_ends(text: str, sentences: list[str]) -> None:
    assert split(text) == sentences


@each_case("text", [
    "Er kommt am 22. November um neun.", "Er kommt am 22. Nov. um neun.", "Am 22.11. Kuchen gebacken.",
    "Seit 22. 11. um neun.",
    "Betriebsferien 21.12. bis 6.1. im Büro.", "férias 21.12. a 6.1. em casa.",
    "On Nov. 22 and Dec. 3 we met.", "Fue el 1.º de noviembre.",
    "Vous partez le 22 juil. à neuf heures.", "We met in Nov.", "It is version 2.11.",
])  # fmt: skip
def test_the_full_stops_of_a_date_end_no_sentence_but_the_last_one(text: str) -> None:
    assert split(f"{text} Then cake.") == [text, "Then cake."]


def test_lines_are_sentences_and_know_that_they_begin_a_line() -> None:
    assert list(split_sentences("a  b\n\n \t\nCat. Dog")) == [
        ("a b", True),
        ("Cat.", True),
        ("Dog", False),
    ]


def test_a_giant_line_is_cut_where_a_reader_would_pause() -> None:
    pieces = split("key: some value, " * 500)

    assert all(len(piece) <= SENTENCE_CHARS_MAX for piece in pieces)
    assert all(piece.endswith("value,") for piece in pieces)


@given(st.text())
def test_splitting_loses_nothing_but_white_space(text: str) -> None:
    assert "".join("".join(split(text)).split()) == "".join(text.split())


@each_case(("text", "kind"), [
    ("https://example.org/a?b=1", TokenKind.URL),
    ("ops@example.com", TokenKind.EMAIL),
    ("2026-03-02", TokenKind.DATE),
    ("02.03.2026", TokenKind.DATE),
    ("15:30", TokenKind.TIME),
    ("5pm", TokenKind.TIME),
    ("€48,500", TokenKind.MONEY),
    ("4.12.0", TokenKind.VERSION),
    ("v2", TokenKind.VERSION),
    ("93122", TokenKind.NUMBER), ("①", TokenKind.NUMBER),
    ("12%", TokenKind.NUMBER),
    ("/etc/cron.d/backups", TokenKind.PATH),
    ("src/app/retry.py", TokenKind.PATH),
    ("C:\\Temp\\x", TokenKind.PATH),
    ("OPS-4127", TokenKind.IDENTIFIER),
    ("PaymentClient.charge()", TokenKind.IDENTIFIER),
    ("keep_days", TokenKind.IDENTIFIER),
    ("--keep-days", TokenKind.IDENTIFIER),
    ("camelCase", TokenKind.IDENTIFIER),
    ("larch-17-brisk", TokenKind.IDENTIFIER),
    ("7719-Falke", TokenKind.IDENTIFIER),
    ("Wi-Fi", TokenKind.WORD),
    ("Nord-Atelier", TokenKind.WORD),
    ("EUR", TokenKind.UNIT),
    ("Dr", TokenKind.TITLE),
    ("März", TokenKind.CALENDAR),
    ("backups", TokenKind.WORD),
    ("thing", TokenKind.COMMON),
    ("car", TokenKind.WORD), ("Tim", TokenKind.WORD), ("notes", TokenKind.WORD),
    ("because", TokenKind.STOP),
    ("What've", TokenKind.STOP),
])  # fmt: skip
def test_a_word_or_value_is_named_for_what_it_is(text: str, kind: TokenKind) -> None:
    assert [(token.surface, token.kind) for token in tokenize(f"({text}),")] == [
        (text, kind)
    ]


@each_case(("text", "surfaces"), [
    ('{"duration_ms":93122,"image":"shop:4.12.0"}', ["duration_ms", "93122", "image", "shop", "4.12.0"]),
    ("서버는nginx입니다", ["서버는", "nginx", "입니다"]),
    ("에러E1234출현", ["에러", "E1234", "출현"]),
    ("변수foo_bar는", ["변수", "foo_bar", "는"]),
    ("เซิร์ฟเวอร์nginxล่ม", ["เซิร์ฟเวอร์", "nginx", "ล่ม"]),
    ("사과 3개, 5월 3일", ["사과", "3개", "5월", "3일"]),
    (f"x/{CODE}", ["x", CODE]),
    (f"x/ab-{CODE}", ["x", "ab", CODE]),  # it has so many parts before its number
    (f"x/{AMOUNT}", ["x", AMOUNT]),
    (f"x/1,{AMOUNT}", ["x", "1", AMOUNT]),  # it has so many digits and points before its unit
])  # fmt: skip
def test_a_text_falls_apart_into_words_and_values(
    text: str, surfaces: list[str]
) -> None:
    assert [token.surface for token in tokenize(text)] == surfaces


@each_case("ending", ["abcdefg", ".\ntool", "-", "°"])
def test_many_digits_before_another_text_are_read_once(ending: str) -> None:
    found = tokenize("9" * 200 + ending)
    assert "9" * 200 in "".join(token.surface for token in found)


def test_endings_do_not_hide_a_repetition() -> None:
    forms = ("paint", "paints", "painted", "painting", "Paint's")

    assert len({light_stem(word) for word in forms}) == 1
    assert light_stem("planned") == light_stem("plan")
    assert light_stem("status") != light_stem("stat")


@each_case(("text", "least", "most"), [
    ("Never push on Friday.", RULING, RULING),
    ("Do not retry.", RULING, RULING),
    ("We decided to wait.", RULING, RULING),
    ("Anna prefers tea.", RULING, RULING),
    ("For the record: always ask first.", RULING, RULING),
    ("The script never ran.", 0, RULING - 0.01),
    ("Noted, we go on.", 0, 0.99),
    ("Danke, bis bald.", 0, 0.99),
    ("It rained in Rome.", 0, 0.99),
])  # fmt: skip
def test_instructions_decisions_and_preferences_matter_most_and_answers_less(
    text: str, least: float, most: float
) -> None:
    assert least <= emphasis_factor(tokenize(text)) <= most


def test_japanese_values_are_found_between_the_words() -> None:
    kinds = {
        token.surface: token.kind
        for token in tokenize("予約番号はKR-77-Aで、4月12日、48,000円です。")
    }

    assert kinds["KR-77-A"] is TokenKind.IDENTIFIER
    assert kinds["4月12日"] is TokenKind.DATE
    assert kinds["48,000円"] is TokenKind.MONEY


@given(st.text())
def test_tokens_of_any_text_stand_in_it(text: str) -> None:
    for sentence in split(text):
        assert all(token.surface in sentence for token in tokenize(sentence))


@each_case(("text", "anchored"), [
    ("I left yesterday.", "I left yesterday (7 May 2023)."),
    ("Moved three years ago", "Moved three years ago (2020)"),
    ("We wed last month!", "We wed last month (April 2023)!"),
    ("Ends in next year's plan", "Ends in next year's plan"),
    ("See you last Friday", "See you last Friday"),
    ("run `log --since yesterday` now", "run `log --since yesterday` now"),
    ("--since=yesterday", "--since=yesterday"),
    ('he said "not yesterday"', 'he said "not yesterday"'),
])  # fmt: skip
def test_a_relative_date_is_followed_by_its_day(text: str, anchored: str) -> None:
    assert dates.annotate_relative_dates(text, SAID) == anchored


def test_a_period_names_its_day_or_its_two_ends() -> None:
    first = SAID.date()
    june = first.replace(month=6)

    assert dates.format_period(first, first) == "Mon 8 May 2023"
    assert dates.format_period(first, first.replace(day=9)) == "8–9 May 2023"
    assert dates.format_period(first, june) == "8 May 2023 – 8 June 2023"


@each_case(("text", "keywords"), [
    ("我们每周四下午三点发布。", {"周四", "下午三点", "发布"}),
    ("支付由王磊负责，物流由李娜负责。", {"支付", "王磊", "物流", "李娜"}),
    ("登录失败五次就锁定账号。", {"登录", "失败", "五", "锁定", "账号"}),
    ("图片大小上限定的是多少？", {"图片", "大小", "上限"}),
    ("谢谢，帮了大忙。", set()),
    # Japanese compounds stay whole.
    ("検証環境のサーバー", {"検証環境", "サーバー"}),
])  # fmt: skip
def test_a_chinese_sentence_has_its_words_as_keywords(
    text: str, keywords: set[str]
) -> None:
    assert find_keywords(text) == keywords
