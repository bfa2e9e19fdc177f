"""What is wrong with a request or a setting is said in plain words; drafts made of requests."""

from typing import Any

import msgspec
import pytest
from support.cases import each_case
from support.fakes import NOON
from support.settings import settings_in_force

from mnemosyned.config.settings import keys
from mnemosyned.errors import InvalidRequest, InvalidTime
from mnemosyned.service.intake import make_draft
from mnemosyned.verbs.facade import VERBS
from mnemosyned.verbs.memories import Remember
from mnemosyned.verbs.request import Request, parse, parse_text, rephrase

REQUESTS = [
    ("recall", '{"query": "x", "limit": 101}', "limit must be at most 100"),
    ("recall", '{"query": "x", "limit": "ten"}', "limit must be a whole number, not text"),
    ("recall", '{"query": ""}', "query must not be empty"),
    ("recall", '{"query": " \\t"}', "query must not be empty"),
    ("forget", '{"query": " "}', "query must not be empty"),
    *(
        (verb, f'{{"project": "{name}"}}', "project must be a key that `projects` lists, and no relative path")
        for verb, name in [("forget", "."), ("list", "./shop"), ("briefing", ".."), ("injections", "~")]
    ),
    ("recall", "{}", "query is missing"),
    ("recall", '{"query": ["x"]}', "query must be text, not a list"),
    ("recall", '{"query": "x", "tier": "cold"}', "must be one of working, episodic, archive"),
    ("list", '{"level": "year"}', "level must be one of day, episode, month, week"),
    ("recall", '{"query": "x", "since": "soon"}', 'since: "soon" is not a valid time; try'),
    ("recall", '{"query": "x", "since": "03/04/2026"}', "can be read as 2026-03-04 or 2026-04-03"),
    ("recall", '{"query": "x", "since": 5}', "since must be a time, not a whole number"),
    ("recall", "[]", "the body must be an object, not a list"),
    ("sleep", '{"sesion": "x"}', "sesion is not known (did you mean session?); the fields are"),
    ("sleep", '{"dry_run": 1}', "dry_run must be true or false, not a whole number"),
    ("forget", '{"session": 5}', "session must be text or a list, not a whole number"),
    ("prune", '{"keep_days": 0}', "keep_days must be more than 0"),
    ("remember", '{"content": null}', "content must be text, not null"),
    (
        "remember_many",
        '{"memories": [{"content": "x", "importance": 2}]}',
        "memories[0].importance must be at most 1",
    ),
    ("get", f'{{"id": "{"x" * 201}"}}', "id must have at most 200 characters"),
    ("remember_many", '{"memories": []}', "memories must not be empty"),
    ("remember_many", '{"memories": [{"color": 1}]}', "color is not known; the fields are content, id"),
]  # fmt: skip


@each_case(("verb", "body", "said"), REQUESTS)
def test_a_bad_request_is_told_what_it_must_be(verb: str, body: str, said: str) -> None:
    with pytest.raises((InvalidRequest, InvalidTime)) as caught:
        parse(VERBS[verb], body.encode())

    assert said in caught.value.message
    assert "`str`" not in caught.value.message


@each_case(("verb", "body", "without"), [
    ("remember", '{"content": "x", "role": null, "tags": null, "dedupe": null}', '{"content": "x"}'),
    ("remember_many", '{"memories": [{"content": "x", "session": null}]}', '{"memories": [{"content": "x"}]}'),
    ("recall", '{"query": "x", "limit": null, "since": "2026-03"}', '{"query": "x", "since": "2026-03"}'),
    ("remember", '{"content": "x", "metadata": {"a": null}, "role": null}',
     '{"content": "x", "metadata": {"a": null}}'),
])  # fmt: skip
def test_null_leaves_out_an_optional_field(verb: str, body: str, without: str) -> None:
    assert parse(VERBS[verb], body.encode()) == parse(VERBS[verb], without.encode())


@each_case("verb", VERBS.values())
def test_every_optional_field_may_be_null(verb: type[Request[Any]]) -> None:
    fields = msgspec.structs.fields(verb)
    nulls: Any = {field.name: None for field in fields if not field.required}

    if len(nulls) == len(fields):
        assert parse(verb, msgspec.json.encode(nulls)) == verb()
        assert parse_text(verb, nulls) == verb()
    else:
        with pytest.raises(InvalidRequest, match=r"missing"):
            parse(verb, msgspec.json.encode(nulls))


@each_case(
    ("typed", "read"),
    [(".5", 0.5), ("1.", 1.0), ("+1", 1.0), ("+.25", 0.25), ("0.50", 0.5)],
)
def test_numbers_are_read_as_people_type_them(typed: str, read: float) -> None:
    fields = {"content": "x", "importance": typed}
    assert parse_text(VERBS["remember"], fields).importance == read  # type: ignore[attr-defined]


def test_words_from_a_shell_are_told_the_same() -> None:
    with pytest.raises(InvalidRequest, match="limit must be a whole number, not text"):
        parse_text(VERBS["recall"], {"query": "x", "limit": "0.5"})
    with pytest.raises(InvalidRequest, match="limit must be a whole number, not text"):
        parse_text(VERBS["recall"], {"query": "x", "limit": "ten"})


@each_case("value", [-(10**12), 10**12, "\n", [1], {"a": 1}, None, 1.5, False])
def test_no_setting_answers_in_the_words_of_a_library(value: object) -> None:
    for key, kind in keys():
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            choices = ["x"] if "enum" in str(error) else []
            said = rephrase(str(error), choices=choices, form="x")
            assert said.startswith("must "), (key, said)


# Drafts made of requests.


def test_only_an_id_that_was_made_here_is_new() -> None:
    config = settings_in_force().config

    made = make_draft(Remember("Tea at four."), config, now=NOON)
    given = make_draft(Remember("Tea at four.", id=made.memory.id), config, now=NOON)

    assert made.has_new_id
    assert not given.has_new_id
    assert given.memory.id == made.memory.id
