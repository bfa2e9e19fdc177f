"""A newer statement ends an older one: recall shows both, and no context tells it as in force."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mnemosyned import Memory
from mnemosyned.errors import NotFound
from mnemosyned.memory.values import EndedStatement, Hit, Line, Tier
from mnemosyned.service.endings import add_endings
from mnemosyned.storage.common.endings import EndingStore
from mnemosyned.verbs.conversation import EndedLine
from mnemosyned.verbs.retention import Forget

OLD = "The staging server listens on port 8080."
NEW = "The staging server now listens on port 9090."


class StoppedClock:
    """A clock that a test moves, and that moves on by a minute whenever it is asked."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 3, 1, 9, tzinfo=UTC)

    def now(self) -> datetime:
        self.moment += timedelta(minutes=1)
        return self.moment


class DatedMemory(Memory):
    """A memory with such a clock."""

    def __init__(self, database: Path, clock: StoppedClock | None = None) -> None:
        self.clock = clock or StoppedClock()
        grace: Any = {"forget.grace_hours": 24}
        super().__init__(database, clock=self.clock, **grace)

    def say(self, *texts: str, session: str = "a", **fields: Any) -> list[str]:  # noqa: ANN401
        """Remember what a user said; return the ids."""
        fields = {"source": "codex", "role": "user", **fields}
        return [self.remember(text, session=session, **fields).id for text in texts]

    def say_port(self) -> tuple[str, str]:
        """Remember the two statements three days apart; return their ids."""
        (old,) = self.say(OLD)
        self.clock.moment += timedelta(days=3)
        (new,) = self.say(NEW, session="b")
        return old, new

    def ended(self) -> list[EndedLine]:
        return [*self.endings().endings]

    def ended_ids(self) -> list[tuple[str, str]]:
        """The statements that are ended, each with the one that ended it."""
        return [(each.id, each.by) for each in self.ended()]

    def summary(self, **fields: Any) -> str:  # noqa: ANN401
        """The words of the only episode of a kind."""
        return self.list(tier=Tier.EPISODIC, **fields).episodes[-1].content


@pytest.fixture
def memory(database: Path, blank: Path) -> Iterator[DatedMemory]:
    shutil.copy(blank, database)
    with DatedMemory(database) as opened:
        yield opened


def reports(day: int = 0) -> list[str]:
    return [f"Report {day}{n} of the harbor is at desk {n}." for n in range(12)]


def test_recall_shows_the_successor_and_the_end_of_the_older(
    memory: DatedMemory,
) -> None:
    old, new = memory.say_port()

    hits = memory.recall("which port did the staging server listen on before?").hits

    assert [hit.id for hit in hits] == [new, old]
    (ended,) = hits[1].ended
    assert (ended.sentence, ended.successor, ended.by) == (OLD, NEW, new)
    assert ended.note == f"until 4 March 2026, then: {NEW}"
    assert not hits[0].ended
    assert memory.list().ended == {old: ended.at}


@pytest.mark.parametrize(("older", "newer"), [
    ("夜間バッチは毎日動かしている。", "夜間バッチは止めました。"),
    ("日志保留30天。", "日志保留时间从30天改为90天。"),
    ("로그 보관 기간은 30일입니다.", "로그 보관 기간이 90일로 바뀌었습니다."),
])  # fmt: skip
def test_an_end_is_found_by_words_of_a_script_without_spaces(
    memory: DatedMemory, older: str, newer: str
) -> None:
    (old,) = memory.say(older)
    memory.say(*(f"今日は会議{n}があった。" for n in range(30)))
    memory.clock.moment += timedelta(days=3)
    (new,) = memory.say(newer, session="b")

    assert memory.ended_ids() == [(old, new)]


TWO_FACTS = "The worker listens on 7070, and Priya owns the retries."
WORKER = "The worker listens on 7071 now."


def test_recall_and_context_say_which_clause_applied_until_when(
    memory: DatedMemory,
) -> None:
    (old,) = memory.say(TWO_FACTS)
    memory.clock.moment += timedelta(days=3)
    memory.say(WORKER, session="b")

    (ended,) = memory.ended()
    hits = memory.recall("who owns the retries of the worker?").hits
    system = memory.context("Who owns the retries of the worker?").system

    assert (ended.id, ended.sentence) == (old, "The worker listens on 7070")
    note = f"“The worker listens on 7070” until 4 March 2026, then: {WORKER}"
    assert [each.note for hit in hits for each in hit.ended] == [note]
    assert f"({note})" in system
    assert memory.list().ended == {}


@pytest.mark.parametrize(("said", "told"), [
    (TWO_FACTS, "Priya owns the retries."),
    ("The worker listens on 7070 and writes its logs to Loki.",
     "The worker listens on 7070 (until 4 March 2026) and writes its logs to Loki."),
])  # fmt: skip
def test_a_summary_tells_the_clause_that_applies(
    memory: DatedMemory, said: str, told: str
) -> None:
    memory.say(said, *reports())
    memory.sleep(force=True)
    memory.clock.moment += timedelta(days=3)
    memory.say(WORKER, session="b")
    (ended,) = memory.ended()

    assert told in memory.summary()
    assert said not in memory.summary()
    memory.undo_ending(ended.id)
    assert said in memory.summary()


def test_two_endings_of_clauses_take_the_sentence_out_of_a_summary(
    memory: DatedMemory,
) -> None:
    memory.say(TWO_FACTS, *reports(), WORKER, "Ben owns the retries now.")
    memory.sleep(force=True)

    assert len(memory.ended()) == 2
    assert "Priya" not in memory.summary()
    assert "7070" not in memory.summary()


def test_an_edit_takes_the_ending_of_a_clause_back(memory: DatedMemory) -> None:
    (old,) = memory.say(TWO_FACTS)
    memory.say(WORKER, session="b")
    assert memory.ended()

    memory.edit(old, text="Priya owns the retries.")
    assert memory.ended() == []

    memory.edit(old, text=f"Hello. {TWO_FACTS}")
    assert [each.sentence for each in memory.ended()] == ["The worker listens on 7070"]


def test_a_learning_is_told_with_its_ended_clause_marked(memory: DatedMemory) -> None:
    memory.say("We always use Redis for the cache, and tests always run in Docker.")
    memory.say("We no longer use Redis for the cache.", session="b")
    assert memory.ended()

    told = str(memory.learnings().learnings)

    assert "tests always run in Docker" in told
    assert "We always use Redis for the cache (until 1 March 2026), and" in told


def test_a_newer_learning_leaves_the_other_clauses_of_an_older_one_in_force(
    memory: DatedMemory,
) -> None:
    memory.say("Please always answer in English, and call me Jo.")
    memory.say("Call me Johanna from now on.", session="b")
    assert memory.ended()

    told = [each.text for each in memory.learnings().learnings]

    assert told == [
        "Call me Johanna from now on.",
        "Please always answer in English, and (until 1 March 2026: call me Jo).",
    ]


def test_a_learning_is_listed_and_given_in_contexts_with_what_replaced_its_clause(
    memory: DatedMemory,
) -> None:
    now = "Invoices go out on Mondays now."
    memory.say("Invoices always go out on Fridays, signed by Petra, never by mail.")
    (new,) = memory.say(now, session="b")
    assert memory.ended()

    listed = memory.learnings()
    (learning,) = listed.learnings
    system = memory.context("Write an invoice for the bakery").system

    (ended,) = listed.ended[learning.id]
    assert (ended.clause, ended.by) == ("Invoices always go out on Fridays", new)
    assert f"never by mail. (since 1 March 2026: {now})" in system
    (line,) = [
        line
        for each in memory.injections()
        for line in each.lines
        if line.id == learning.id
    ]
    assert now not in line.text

    memory.forget(new)
    assert not memory.learnings().ended


MOVED = "Port 8080 is taken. I suggest that the staging server listens on port 9090 instead of port 8080."


@pytest.mark.parametrize(
    ("answer", "successor"),
    [
        ("ok, let's do that", MOVED.partition(". ")[2]),
        ("yes, but port 9191", "yes, but port 9191"),
        ("no", ""),
        ("ok, thanks", ""),
    ],
)
def test_a_proposal_ends_a_statement_once_a_person_agrees(
    memory: DatedMemory, answer: str, successor: str
) -> None:
    memory.say(OLD)
    memory.clock.moment += timedelta(days=3)
    memory.say("Why does staging not start?", session="b")
    memory.say(MOVED, session="b", role="assistant")
    assert not memory.ended()

    memory.say(answer, session="b")

    assert [each.successor for each in memory.ended()] == [successor][: bool(successor)]
    assert len(memory.ended()) == bool(successor)  # also if it is read again


@pytest.mark.parametrize(
    "proposal",
    [
        "I suggest we move the server to port 9191.",
        "How about moving the server to port 9191?",
    ],
)
def test_an_imperative_ends_a_statement_once_a_person_agrees(
    memory: DatedMemory, proposal: str
) -> None:
    memory.say("The server listens on port 9090.")
    memory.clock.moment += timedelta(days=3)
    memory.say(f"9090 is taken. {proposal}", session="b", role="assistant")
    assert not memory.ended()

    memory.say("yes", session="b")

    assert [each.successor for each in memory.ended()] == [proposal]


@pytest.mark.parametrize("answer", ["ok, let's do that", "yes, but port 9191"])
@pytest.mark.parametrize("gone", [0, 1])
def test_nothing_is_ended_by_an_agreement_of_which_half_is_gone(
    memory: DatedMemory, answer: str, gone: int
) -> None:
    (old,) = memory.say(OLD)
    memory.clock.moment += timedelta(days=3)
    (asked,) = memory.say(MOVED, session="b", role="assistant")
    (answered,) = memory.say(answer, session="b")
    assert memory.ended()
    id, text = [(asked, MOVED), (answered, answer)][gone]

    memory.edit(id, text="Good morning.")
    assert not memory.ended()
    memory.edit(id, text=text)
    assert len(memory.ended()) == 1

    memory.edit(old, text=f"Hello. {OLD}")
    assert len(memory.ended()) == 1

    memory.edit(id, text="Good morning.")
    memory.undo()
    assert len(memory.ended()) == 1

    memory.forget(id)
    assert not memory.ended()
    memory.undo()
    assert len(memory.ended()) == 1


def test_an_ending_is_found_with_the_original_after_sleep(memory: DatedMemory) -> None:
    old, _ = memory.say_port()
    memory.sleep(force=True)

    hits = memory.recall("staging server port").hits

    (line,) = [line for hit in hits for line in hit.lines if line.id == old]
    assert line.ended[0].successor == NEW


def test_a_summary_no_longer_tells_what_was_ended_later(memory: DatedMemory) -> None:
    memory.say(OLD, *reports())
    memory.sleep(force=True)
    assert OLD in memory.summary()

    memory.clock.moment += timedelta(days=3)
    memory.say(NEW, session="b")
    (ended,) = memory.ended()

    assert OLD not in memory.summary()
    memory.undo_ending(ended.id)
    assert OLD in memory.summary()


@pytest.mark.parametrize("change", ["forget", "edit"])
def test_a_summary_tells_what_is_no_longer_ended_until_an_undo(
    memory: DatedMemory, change: str
) -> None:
    memory.say(OLD, *reports())
    memory.sleep(force=True)
    memory.clock.moment += timedelta(days=3)
    (new,) = memory.say(NEW, session="b")
    assert memory.ended()
    assert OLD not in memory.summary()

    if change == "edit":
        memory.edit(new, text="The kitchen is painted blue.")
    else:
        assert memory.forget(new, dry_run=True).episodes_rewritten == 1
        assert memory.forget(new).episodes_rewritten == 1
    assert OLD in memory.summary()

    memory.undo()
    assert memory.ended()
    assert OLD not in memory.summary()
    assert "harbor" in memory.summary()


def test_a_summary_leaves_out_what_was_ended_before(memory: DatedMemory) -> None:
    memory.say(OLD, *reports(), NEW)
    memory.sleep(force=True)

    (episode,) = memory.list(tier=Tier.EPISODIC).episodes
    assert OLD not in episode.content
    assert len(memory.expand(episode.id).originals) == 14


def test_an_ended_statement_keeps_its_exact_values(memory: DatedMemory) -> None:
    memory.say("The staging server listens on port 8080, build 3f2a91c.")
    memory.say(*reports(), NEW)
    memory.sleep(force=True)
    assert memory.ended()

    (episode,) = memory.list(tier=Tier.EPISODIC).episodes
    values = {each.value for each in memory.expand(episode.id).episode.details}
    assert {"3f2a91c", "9090"} <= values, values
    assert "3f2a91c" not in episode.content


def test_a_secret_of_an_ended_statement_is_masked_in_the_others(
    memory: DatedMemory,
) -> None:
    memory.say(
        "The staging server uses the password tulip-Harbor-93.",
        "We decided: the script of the harbor enters tulip-Harbor-93 at desk 4.",
        "The staging server no longer uses a password.",
        *reports(),
    )
    memory.sleep(force=True)

    assert memory.ended()
    assert "tulip-Harbor-93" not in memory.summary()


def test_a_learning_of_an_ended_sentence_is_not_in_force(memory: DatedMemory) -> None:
    memory.say("We always use Redis for the session cache.")
    assert len(memory.learnings()) == 1

    memory.say("We no longer use Redis for the session cache.")
    memory.endings()

    assert "always use Redis" not in str(memory.learnings().learnings)


def test_a_context_says_until_when_a_statement_applied(memory: DatedMemory) -> None:
    memory.say_port()

    system = memory.context("Which port does the staging server listen on?").system

    assert f"(until 4 March 2026, then: {NEW})" in system
    (injection,) = memory.injections().injections
    assert any(OLD in line.text for line in injection.lines)
    assert not any(OLD in line.text and NEW in line.text for line in injection.lines)


def test_the_ledger_has_all_words_of_what_reads_like_a_note(
    memory: DatedMemory,
) -> None:
    memory.say("The staging server\n(until it is replaced) listens on port 8080.")

    memory.context("Which port does the staging server listen on?")

    (injection,) = memory.injections().injections
    assert "port 8080" in injection.lines[0].text


def test_only_one_is_ended_among_two_hundred_others(memory: DatedMemory) -> None:
    (old,) = memory.say(OLD)
    for number in range(200):
        texts = (
            f"Ticket {number}: the export of report {number} is slow on page {number % 7}.",
            f"I looked at the server logs of host {number}, nothing unusual on port {number}.",
            f"Let's also add a test for case {number} of the staging deploy script.",
            f"Should the server of team {number} move to another port?",
        )
        role = "user" if number % 2 else "assistant"
        memory.say(texts[number % 4], session=f"s{number // 20}", role=role)
    memory.clock.moment += timedelta(days=3)
    (new,) = memory.say(NEW, session="b")

    assert memory.ended_ids() == [(old, new)]


def test_undoing_what_was_not_ended_says_so_and_changes_nothing(
    memory: DatedMemory,
) -> None:
    (said,) = memory.say(OLD)
    memory.sleep(force=True)

    for id in ("nobody", said):
        with pytest.raises(NotFound, match=f"no statement of {id!r} is ended"):
            memory.undo_ending(id)

    assert memory.summary() == OLD


def test_statements_of_another_project_or_source_stay(memory: DatedMemory) -> None:
    memory.say(OLD, source="mail")
    memory.say(NEW, session="b")

    assert memory.ended() == []


def test_what_one_says_of_himself_ends_nothing_of_another(memory: DatedMemory) -> None:
    memory.say("I live in a flat in Berlin.", role="Anna")
    (moved,) = memory.say("I live in a flat in Berlin.", role="Ben")
    memory.say("I no longer live in a flat in Berlin.", session="b", role="Ben")

    assert [each.id for each in memory.ended()] == [moved]


def test_an_edit_takes_an_ending_back_or_makes_one(memory: DatedMemory) -> None:
    old, new = memory.say_port()
    assert memory.ended()

    for id, text, again in (
        (new, "The staging server is slow.", NEW),
        (old, "The kitchen is painted blue.", OLD),
    ):
        memory.edit(id, text=text)
        assert memory.ended() == []

        memory.edit(id, text=again)
        assert memory.ended_ids() == [(old, new)]

    memory.undo_ending(old)
    for id, text in ((old, f"{OLD} Ada has the keys."), (new, f"{NEW} Ben too.")):
        memory.edit(id, text=text)
        assert [each.undone for each in memory.ended()] == [True]


def test_an_undo_finds_endings_again_where_the_edit_kept_none(
    memory: DatedMemory, database: Path
) -> None:
    """As with edits of earlier versions, and those in a database that was moved."""
    old, new = memory.say_port()
    assert memory.ended()
    memory.edit(old, text="The kitchen is painted blue.")
    with closing(sqlite3.connect(database)) as raw, raw:
        raw.execute("UPDATE revision SET fields = json_remove(fields, '$.derived')")

    memory.undo()

    assert memory.ended_ids() == [(old, new)]


@pytest.mark.parametrize(
    "forgotten", [Forget(session="a"), Forget(session="b"), Forget(source="codex")]
)
@pytest.mark.parametrize("undone", [False, True])
def test_a_memory_that_is_put_back_has_its_endings_again(
    memory: DatedMemory, forgotten: Forget, *, undone: bool
) -> None:
    old, new = memory.say_port()
    assert memory.ended()
    if undone:
        memory.undo_ending(old)
    receipt = memory.call(forgotten)
    assert memory.ended() == []

    memory.restore(receipt.call)

    (ending,) = memory.ended()
    assert (ending.id, ending.by, ending.undone) == (old, new, undone)


def test_what_an_assistant_does_ends_nothing_elsewhere(memory: DatedMemory) -> None:
    before = "I use Redis for the sessions."
    after = "I no longer use Redis for the sessions."
    memory.say(before, source="mail", role="assistant")
    (said,) = memory.say(before, source="mail")
    memory.say(after, session="b", role="assistant")
    assert memory.ended() == []

    memory.say(after, session="b")

    assert [each.id for each in memory.ended()] == [said]


def test_a_change_that_an_assistant_reports_ends_what_a_user_said(
    memory: DatedMemory,
) -> None:
    (port,) = memory.say("The local Redis is on port 6380.")
    memory.say("Hetzner is now our host.", "I use Redis for the sessions.")
    memory.say("I've moved the local Redis of the tests to port 1.", role="assistant")
    assert memory.ended() == []

    memory.say("I've moved the local Redis to port 6379.", role="assistant")

    assert [each.id for each in memory.ended()] == [port]


@pytest.mark.parametrize("sleeps_daily", [True, False])
def test_a_week_tells_no_statement_that_ended_in_it(
    memory: DatedMemory, *, sleeps_daily: bool
) -> None:
    memory.clock.moment += timedelta(days=1)  # it is a Monday
    for day, text in enumerate((OLD, f"{OLD} Ada has the keys.", NEW, "It rained.")):
        memory.say(text, session=f"s{day}")
        memory.clock.moment += timedelta(days=1)
        if sleeps_daily:
            memory.sleep(force=True)
    memory.clock.moment += timedelta(days=40)
    memory.sleep(force=True)

    week = memory.summary(level="week")
    assert OLD not in week
    assert NEW in week
    assert "Ada has the keys." in week

    for ended in memory.ended():
        memory.undo_ending(ended.id)
    assert OLD in memory.summary(level="week")


def test_a_new_run_reads_what_an_earlier_one_left(tmp_path: Path) -> None:
    with DatedMemory(tmp_path / "memory.db") as first:
        said = first.say_port()
    with DatedMemory(tmp_path / "memory.db", first.clock) as second:
        assert second.ended_ids() == [said]


def test_get_shows_what_ended_a_memory_with_secrets_masked(memory: DatedMemory) -> None:
    (old,) = memory.say("The wifi password is tulip-4711-Xy.")
    memory.say("The wifi password is now rose-0815-Zq.")
    memory.endings()

    (ended,) = memory.get(old).ended

    assert "tulip-4711-Xy" not in ended.sentence
    assert "rose-0815-Zq" not in ended.successor
    (ended,) = memory.get(old, reveal=True).ended
    assert ended.successor == "The wifi password is now rose-0815-Zq."


def test_of_a_chain_of_endings_the_newest_is_first() -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    blank: Any = dict.fromkeys(("snippet", "content"), "")
    asked = [
        Hit(
            id=id, tier=Tier.WORKING, score=1.0, session="a", source=None, created_at=at,
            **blank,
        )
        for id in ("other", "oldest", "newest", "middle")
    ]  # fmt: skip
    known = {
        id: [EndedStatement(at=at, by=by, reason="now", sentence="", successor="")]
        for id, by in (("oldest", "middle"), ("middle", "newest"))
    }
    store = cast(EndingStore, SimpleNamespace(of=lambda _: known))

    hits = add_endings(store, asked, reveal=True)

    assert [each.id for each in hits] == ["other", "newest", "middle", "oldest"]


@pytest.mark.parametrize(("score", "order"), [(0.5, "ab"), (0.7, "ba")])
def test_an_end_of_a_side_line_leaves_an_episode_in_its_place(
    score: float, order: str
) -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    line = partial(Line, created_at=at, role="user", content="")
    first, second = (
        Hit(
            id=id, tier=Tier.EPISODIC, score=1.0, session="a", source=None, created_at=at,
            snippet="", content="", lines=lines,
        )
        for id, lines in (
            ("a", (line(id="best", score=1.0), line(id="side", score=score))),
            ("b", (line(id="newer", score=1.0),)),
        )
    )  # fmt: skip
    ended = EndedStatement(at=at, by="newer", reason="now", sentence="", successor="")
    store = cast(EndingStore, SimpleNamespace(of=lambda _: {"side": [ended]}))

    hits = add_endings(store, [first, second], reveal=True)

    assert "".join(each.id for each in hits) == order
