"""Learnings rated for a request by the built-in encoder: those that it needs come first."""

import shutil
import tomllib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from support.agents import claude, claude_line, write_lines
from support.fakes import NOON
from support.vector_service import wait_until, wait_until_embedded

from mnemosyned.agents.hooks.service import HookService
from mnemosyned.assembly.build import open_memory
from mnemosyned.config.settings import Config
from mnemosyned.conversation.learnings.recognize import find_statements
from mnemosyned.conversation.learnings.relevance import (
    RankedLearning,
    load_topics,
    rank_for_request,
)
from mnemosyned.errors import ModelUnavailable
from mnemosyned.memory.values import EmbedderState, Learning
from mnemosyned.models.sentence_encoder import SentenceEncoder
from mnemosyned.search.vectors.bearing import NEW_TEXTS_MAX, BearingRater
from mnemosyned.service.reminder import MEMORIES_READ_MAX
from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.conversation import Context, Endings, Learnings, RemoveLearning
from mnemosyned.verbs.exchange import Export
from mnemosyned.verbs.memories import EditMemory, Remember
from mnemosyned.verbs.retention import Forget
from mnemosyned.verbs.upkeep import Status

SAID = tomllib.loads(
    (Path(__file__).parents[1] / "domain" / "instructions_whole.toml").read_text(
        encoding="utf-8"
    )
)["said"]
RULE = "letters to customers in formal Spanish, with the order's number on top"
SHOWN, TOLD_MIN = 5, 0.6
IDLE = [
    "thanks, that worked",
    "weiter",
    "¿qué hora es en Tokio?",
    "open the next file",
    "what's the plural of sheep?",
]


@pytest.fixture(scope="module")
def rater(encoder: SentenceEncoder) -> BearingRater:
    return BearingRater(encoder, load_topics())


def learnings_of(said: Sequence[str]) -> list[Learning]:
    return [
        Learning(
            id=f"{number}",
            kind=statement.kind,
            text=statement.text,
            created_at=NOON - timedelta(days=30),
            session="default",
        )
        for number, text in enumerate(said)
        for statement in find_statements(text)
    ]


def ranked(
    rater: BearingRater, learnings: list[Learning], request: str
) -> list[RankedLearning]:
    def rate(asked: str, texts: Sequence[str]) -> Sequence[float]:
        return rater.rate(asked, texts, new_max=len(texts))

    return rank_for_request(learnings, request, now=NOON, rate=rate)


@pytest.mark.thorough
def test_a_prompt_about_what_is_in_sight_or_that_tells_something_asks_for_less(
    rater: BearingRater,
) -> None:
    for said, in_sight in [
        ("which port did we take for the proxy?", "which port is in the line above?"),
        ("when do we release?", "when did the test you just ran begin?"),
        ("when does my sister arrive?", "My sister arrives on the 23rd with the twins"),
    ]:
        asking, other = map(rater.rate_prompt, (said, in_sight))
        assert asking is not None
        assert other is not None
        assert asking > other + 2


def test_a_rule_comes_first_for_a_request_in_other_words_and_other_languages(
    rater: BearingRater,
) -> None:
    learnings = learnings_of(
        [
            "In this repo money is integer cents, never floats.",
            "I have a strong aversion to horror movies.",
            "Never force push.",
        ]
    )

    for request, expected in [
        ("apply a coupon to the shopping cart", "cents"),
        ("añade el precio al carrito", "cents"),
        ("was schauen wir heute Abend im Kino?", "horror"),
        ("push the branch that has diverged from origin", "push"),
    ]:
        best = ranked(rater, learnings, request)[0]
        assert expected in best.learning.text, request
        assert best.concerns


@pytest.mark.thorough
def test_most_requests_find_their_learning_among_many(rater: BearingRater) -> None:
    learnings = learnings_of([said["text"] for said in SAID])
    told = [
        str(number) in {each.learning.id for each in best[:SHOWN]}
        for number, said in enumerate(SAID)
        for request in said["requests"]
        for best in [ranked(rater, learnings, request)]
    ]

    assert sum(told) >= TOLD_MIN * len(told)


@pytest.mark.parametrize("request_text", IDLE)
def test_nothing_is_sure_to_matter_to_an_idle_request(
    rater: BearingRater, request_text: str
) -> None:
    learnings = learnings_of([said["text"] for said in SAID[:20]])

    best = ranked(rater, learnings, request_text)

    assert max(each.confidence for each in best) < 0.5, best[0]


ASKING = [
    "who signs the delivery notes now?",
    "wo hängt der Ersatzschlüssel?",
    "¿cuándo viene el fontanero?",
    "où sont les sauvegardes ?",
    "принтер не отвечает, какой у него адрес?",
]


def test_questions_about_a_project_are_told_from_others(rater: BearingRater) -> None:
    asking = [rater.rate_prompt(each) or 0.0 for each in ASKING]
    needless = [rater.rate_prompt(each) or 0.0 for each in [*IDLE, "merci, continue"]]

    assert min(asking) > max(needless)


@pytest.fixture
def rated(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MemoryService]:
    """A memory with an encoder, which reads when it is asked to."""
    monkeypatch.setenv("CACHE_DIRECTORY", str(cache))
    config = Config(database=str(tmp_path / "memory.db"), auto_sleep=False)
    with open_memory(config) as memory:
        yield memory.service


def say(memory: MemoryService, *texts: str) -> list[str]:
    """Remember what a user says; the ids."""
    return [memory.call(Remember(text, role="user")).id for text in texts]


def learned(memory: MemoryService) -> dict[str, str]:
    """The ids of the learnings by text, once the encoder has read all memories."""
    ready = EmbedderState.READY
    wait_until(lambda: memory.call(Status()).embedder.state is ready)
    memory.call(Endings())
    return {each.text: each.id for each in memory.call(Learnings()).learnings}


def test_a_context_shows_what_the_encoder_finds(rated: MemoryService) -> None:
    movies = "I have a strong aversion to horror movies."
    say(rated, "Prefers window seats.", movies, "I prefer tea over coffee.")

    shown = rated.call(Context("was schauen wir heute Abend im Kino?")).learnings

    listed = rated.call(Learnings()).learnings
    assert shown == [each.id for each in listed if "horror" in each.text]
    assert len(shown) == 1


def test_a_rule_without_a_pattern_is_learned_by_its_vector(
    rated: MemoryService,
) -> None:
    say(rated, RULE, "the printer is broken, Ana looks at it", "ok, thanks")
    assert not rated.call(Learnings()).learnings

    assert list(learned(rated)) == [RULE]


def test_rules_that_were_removed_are_not_learned_again(rated: MemoryService) -> None:
    said, by_pattern = say(rated, RULE, "Always use tabs.")
    [pattern] = rated.call(Learnings()).learnings
    rated.call(RemoveLearning(pattern.id))
    first = learned(rated)
    rated.call(RemoveLearning(first[RULE]))

    exported = b"".join(rated.export(Export()))
    rated.call(Forget(by_pattern))
    rated.call(Forget(said))
    rated.restore_lines(exported)
    after_restore = learned(rated)
    rated.call(EditMemory(said, text=f"{RULE}. ok"))

    assert list(first) == [RULE]
    assert (after_restore, learned(rated)) == ({}, {})


def test_an_edit_ends_the_rule_that_its_old_words_stated(rated: MemoryService) -> None:
    (said,) = say(rated, RULE)
    before = learned(rated)

    new = RULE.replace("Spanish", "French")
    rated.call(EditMemory(said, text=new, drop_history=True))
    stored = rated.call(Learnings(superseded=True)).learnings
    after = list(learned(rated))
    rated.call(EditMemory(said, text="ok, thanks"))

    assert (list(before), after, list(learned(rated))) == ([RULE], [new], [])
    assert [each.text for each in stored] == [new]


@pytest.mark.thorough
def test_no_sentence_of_a_forgotten_memory_is_in_a_cache(rated: MemoryService) -> None:
    (said,) = say(rated, RULE)
    learned(rated)
    wait_until_embedded(rated, 1)
    assert rated.rate_texts
    rated.rate_texts("write to a customer", [RULE])
    rated.rate_statements({said: RULE})

    def cached() -> list[str]:
        kept = vars(rated.rater).values()
        caches = [each for each in kept if isinstance(each, OrderedDict)]
        keys = [f"{key}" for cache in caches for key in cache]
        return [key for key in keys if RULE in key]

    before = len(cached())
    rated.call(Forget(said))

    assert (before, cached()) == (2, [])


STATED = [
    "The wholesaler delivers on Tuesdays before seven, at the back door.",
    "we moved the payment webhook to port 8443 because of the proxy",
    "Der Mietvertrag läuft bis Ende Juni 2028.",
    "Marta left us, Yusuf is in charge of the kitchen now",
]
PASSING = [
    "yup, address 3 and 7 and run it again",
    "=== RUN TestMerge --- FAIL: TestMerge (0.01s) merge_test.go:41: got 3, want 4",
    "Let me set that up, one second.",
    "I still get the same error in the second window",
]


def test_lasting_statements_are_rated_above_remarks(rated: MemoryService) -> None:
    said = STATED + PASSING
    texts = dict(zip(say(rated, *said), said, strict=True))
    before = rated.rate_statements({"unknown": "x"})
    wait_until_embedded(rated, len(texts))

    odds = rated.rate_statements(texts)

    assert before == {}
    stated, passing = (
        [odds[id] for id, text in texts.items() if text in part]
        for part in (STATED, PASSING)
    )
    assert min(stated) > max(passing)
    assert rated.rate_statements(texts) == odds


def test_news_of_a_day_is_rated_above_attitudes_questions_and_narration(
    rater: BearingRater,
) -> None:
    news = [
        "We adopted two kittens from the shelter on Saturday.",
        "Meine Schwester hat gestern ihr zweites Kind bekommen.",
        "The deadlock came from the retry job, and migration 41 fixes it.",
        "来月から大阪の支店に転勤になりました。",
    ]
    others = [
        "Kittens bring so much joy to a home.",
        "Wie geht es deiner Schwester?",
        "Let me look at the retry job first.",
        "大阪はいいところですよね。",
    ]

    assert min(rater.rate_events(news)) > max(rater.rate_events(others))
    assert not rater.rate_events([])


def test_a_value_that_an_assistant_reports_as_done_ends_a_users(
    rated: MemoryService,
) -> None:
    say(rated, "Logs are kept for 30 days.")
    learned(rated)  # waits for the encoder
    rated.call(Remember("Logs are kept for 12 days.", role="assistant"))
    assert rated.call(Endings()).endings == []

    rated.call(Remember("Done. Logs are kept for 14 days.", role="assistant"))

    ended = {each.sentence: each.successor for each in rated.call(Endings()).endings}
    assert ended.get("Logs are kept for 30 days.") == "Logs are kept for 14 days."


def test_memories_that_end_others_are_compared_by_vectors(rated: MemoryService) -> None:
    queue, moved, certificate = ids = say(
        rated,
        "The webhook queue runs on Redis streams.",
        "Dropping Redis, the webhook queue moves to Postgres.",
        "The certificate of the bank runs out in autumn.",
    )
    wait_until_embedded(rated, len(ids))

    comparison = rated.vectors.compare(rated.vectors.vectors_of(ids))

    cosines = comparison.cosines_to(queue)
    assert cosines[queue] == pytest.approx(1.0, abs=0.01)
    assert cosines[moved] > cosines[certificate]
    assert comparison.cosines_to("unknown") == {}
    assert comparison.rate_ending(moved, "unknown") is None
    ends = comparison.rate_ending(moved, queue)
    other = comparison.rate_ending(certificate, queue)
    assert ends is not None
    assert other is not None
    assert ends > other


@pytest.mark.thorough
def test_a_prompt_is_told_an_old_statement_in_other_words_after_hundreds_of_newer_ones(
    rated: MemoryService, tmp_path: Path
) -> None:
    newer = [f"Rename column {n} of the report" for n in range(MEMORIES_READ_MAX + 20)]
    transcript = tmp_path / ".claude" / "projects" / "-w-shop" / "s1.jsonl"
    lines = [claude_line("user", text, uuid=text) for text in [STATED[0], *newer]]
    write_lines(transcript, lines)
    hooks = HookService(rated, home=tmp_path)
    claude(hooks, transcript).stop()
    wait_until_embedded(rated, len(lines))

    other = claude(hooks, transcript.with_name("s2.jsonl"), session="s2")

    assert STATED[0] in other.ask("When do our suppliers bring the goods?")


def test_a_prompt_is_told_a_note_of_no_session_beside_the_project(
    rated: MemoryService, tmp_path: Path
) -> None:
    said = [
        "the listing is cached in Redis for 10 minutes",
        "product photos are served by Cloudflare",
        "calls to the depot are retried five times",
        "we write the runbook of the depot next week",
    ]
    note = "Petra fetches the parcels at 14:30, and not on Saturdays"
    hooks = HookService(rated, home=tmp_path)
    file = tmp_path / ".claude" / "projects" / "-w-shop" / "s1.jsonl"
    write_lines(file, [claude_line("user", text, uuid=text) for text in said])
    claude(hooks, file).stop()
    rated.call(Remember(note))
    wait_until_embedded(rated, len(said) + 1)

    other = claude(hooks, file.with_name("s2.jsonl"), session="s2")
    told = other.ask("when do they pick up our packages?")

    first = next(line for line in told.splitlines() if line.startswith("- "))
    assert note in first


def test_a_task_is_not_open_once_somebody_said_that_it_is_done(
    rated: MemoryService, tmp_path: Path
) -> None:
    task = "TODO: the three tests in checkout_test.go are flaky, fix those before the release"
    other = "TODO: write the runbook for an outage of the depot"
    said = [task, other, "photos are served by Cloudflare", "those tests are fixed now"]
    hooks = HookService(rated, home=tmp_path)
    file = tmp_path / ".claude" / "projects" / "-w-shop" / "s1.jsonl"
    lines = [
        claude_line("user", text, uuid=text, minutes=day * 1440)
        for day, text in enumerate(said)
    ]
    write_lines(file, lines)
    claude(hooks, file).stop()
    wait_until_embedded(rated, len(said))

    start = claude(hooks, file.with_name("s2.jsonl"), session="s2").start()

    assert f"(earlier: [2026-03-16, claude-code, user] {task})" in start
    _, _, unfinished = start.partition("Still open in this project:\n")
    assert unfinished.splitlines()[0].endswith(other)
    assert task not in unfinished


def test_few_texts_are_embedded_in_a_call_and_more_later(rater: BearingRater) -> None:
    texts = [f"never commit file number {number}" for number in range(30)]

    first = rater.rate("commit what you have", texts)
    second = rater.rate("commit what you have", texts)

    assert sum(rating > 0 for rating in first) == NEW_TEXTS_MAX
    assert all(rating > 0 for rating in second)


def test_examples_are_embedded_before_the_first_prompt(
    rater: BearingRater, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded: list[str] = []
    embed = SentenceEncoder.embed

    def note(encoder: SentenceEncoder, texts: Sequence[str]) -> list[bytes]:
        embedded.extend(texts)
        return list(embed(encoder, texts))

    rater.load_examples()
    monkeypatch.setattr(SentenceEncoder, "embed", note)

    rater.load_examples()
    rater.rate_prompt("who signs?")
    rater.rate("add a price", ["money is cents"])

    assert embedded == ["who signs?", "add a price", "money is cents"]


def test_without_its_model_nothing_is_rated() -> None:
    class Unavailable(SentenceEncoder):
        def embed(self, texts: Sequence[str]) -> list[bytes]:  # noqa: ARG002
            raise ModelUnavailable("no file")

    rater = BearingRater(Unavailable(), load_topics())

    assert rater.rate("x", ["y"]) == ()
    assert rater.rate_prompt("x") is None


def test_a_request_waits_for_no_file_of_the_encoder(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path))
    encoder = SentenceEncoder()
    rater = BearingRater(encoder, load_topics())

    assert rater.rate_prompt("Which port did we choose?") is None
    assert rater.rate("Add a price", ["Money is integer cents."]) == ()

    assert list(tmp_path.iterdir()) == []
    shutil.copytree(cache, tmp_path, dirs_exist_ok=True)
    encoder.embed_question("ready")  # as the background does
    encoder.close()
    assert rater.rate_prompt("Which port did we choose?") is not None
    encoder.close()
