"""What `compact` takes out of a conversation: where it is, and how it comes back."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from domain.talks import talks
from hypothesis import HealthCheck, assume, given, settings, strategies as st
from support.blank_database import MIGRATIONS
from support.cases import thorough
from support.fakes import FakeSummarizer, files_containing
from support.leftovers import left_of
from support.messages import call, result, says, text_block, tool_result, tool_use
from support.services import Lab
from support.stores import get_memory, open_store

from mnemosyned import sendable
from mnemosyned.conversation.archived import WORDLESS, as_message
from mnemosyned.conversation.summary_message import is_summary
from mnemosyned.errors import NotFound, SleepInProgress, StorageFailed
from mnemosyned.memory.forgetting import content_hash
from mnemosyned.memory.masking import SecretRule
from mnemosyned.memory.values import (
    MemoryRecord,
    SummarizerState,
    SummarizerStatus,
    Tier,
)
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.conversation import Compact, Shortened
from mnemosyned.verbs.facade import Caller
from mnemosyned.verbs.memories import Expand

if TYPE_CHECKING:
    from mnemosyned.storage.postgres.store import PostgresStore

Messages = list[dict[str, Any]]


def compact(service: Caller, messages: Messages, **fields: Any) -> Shortened:  # noqa: ANN401
    return service.call(Compact(messages, **{"max_tokens": 3_000, **fields}))


def rounds(count: int, *, first: int = 0) -> Messages:
    """Rounds of an agent at work, each with a long tool result; ids begin anew in every one."""
    made: Messages = []
    for n in range(first, first + count):
        made += [
            says(f"Step {n}: decided: use plan {n}.", id="1"),
            call(f"call-{n}"),
            result(f"call-{n}", f"begin {n} " + "row " * 400),
            says(f"I read file {n}.", "assistant", id="2"),
        ]
    return made


def anthropic_rounds(count: int) -> Messages:
    """Rounds in Anthropic's form, with a picture and a NUL."""
    made: Messages = []
    for n in range(count):
        picture = {"type": "image", "source": {"data": "AAAA"}}
        told = [text_block(f"{n} " + "row " * 400), picture]
        made += [
            says([text_block(f"Look at {n}\0!")]),
            tool_use(f"t{n}"),
            says([tool_result(f"t{n}", told)]),
            says(f"Seen {n}.", "assistant"),
        ]
    return made


def expand_all(service: Caller, *ids: str) -> Messages:
    """The messages that these ids stand for, as they were."""
    found = [service.call(Expand(id, reveal=True)).originals for id in ids]
    return [as_message(memory) for originals in found for memory in originals]


def find_missing(service: Caller, given: Messages, answer: Shortened) -> Messages:
    """Messages that are neither in the answer nor expanded from it."""
    there = [*answer.messages, *expand_all(service, *answer.expand)]
    return [message for message in given if message not in there]


def refuse_rows(store: SqliteStore | PostgresStore, table: str, where: str) -> None:
    """Have the database refuse new rows of a table for which a condition on `new` holds."""
    if isinstance(store, SqliteStore):
        with closing(sqlite3.connect(store.database)) as connection, connection:
            connection.execute(
                f"CREATE TRIGGER refuses BEFORE INSERT ON {table} WHEN {where} "
                "BEGIN SELECT RAISE(ABORT, 'refused'); END"
            )
        return
    # Outside transactions it is who owns the tables, also where requests have another role.
    with store.pool.outside_transactions(store.owner) as session:
        session.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE 'refused'; END $$"
        )
        session.execute(
            f"CREATE TRIGGER refuses BEFORE INSERT ON {table} FOR EACH ROW WHEN ({where}) "
            "EXECUTE FUNCTION refuse()"
        )


UNIQUE = "Zqxjv48213Kwyz"
ALL_OF_IT: dict[str, Any] = {"policy": "facts", "keep_recent": 0, "force": True}


def stubs_of(messages: Messages) -> Messages:
    """The tool results that were replaced by their beginning and the id of the rest."""
    return [one for one in messages if "expand m-" in str(one["content"])]


@pytest.mark.parametrize("policy", ["auto", "facts", "rounds"])
@pytest.mark.parametrize(
    "talk", [rounds(20), anthropic_rounds(20)], ids=["openai", "anthropic"]
)
def test_messages_expand_word_for_word(lab: Lab, policy: str, talk: Messages) -> None:
    answer = compact(lab, talk, policy=policy)

    assert answer.changed
    assert answer.tokens_after < answer.tokens_before
    assert answer.expand
    assert find_missing(lab, talk, answer) == []
    gone = [one for one in talk if one not in answer.messages]
    assert len(answer.archived) >= len(gone)


@pytest.mark.parametrize("policy", ["auto", "facts", "rounds"])
def test_repeating_a_compaction_changes_nothing(lab: Lab, policy: str) -> None:
    first = compact(lab, rounds(20), policy=policy)
    before = lab.status().tiers
    lab.clock.advance(hours=1)

    again = compact(lab, rounds(20), policy=policy)
    upon_it = compact(lab, first.messages, policy=policy)

    assert again == first
    assert lab.status().tiers == before
    assert not upon_it.changed


@pytest.mark.parametrize(
    ("policy", "stripped"),
    [("auto", True), ("facts", False), *thorough(("auto", False), ("facts", True))],
)
def test_a_merged_compaction_loses_none(
    lab: Lab, policy: str, *, stripped: bool
) -> None:
    talk, given, stubs = rounds(12), rounds(12), list[tuple[str, ...]]()
    for turn in range(3):
        answer = compact(lab, talk, policy=policy)
        stubs.append(tuple(answer.expand))
        kept = list(sendable(answer.messages)) if stripped else answer.messages
        further = rounds(6, first=12 + 6 * turn)
        talk, given = [*map(dict, kept), *further], [*given, *further]
        lab.clock.advance(hours=30)
        lab.sleep()

    last = compact(lab, talk, policy=policy)

    assert last.expand[0] not in {ids[0] for ids in stubs}
    recovered = expand_all(lab, last.expand[0])
    assert recovered[0] == given[0]
    stands = [*last.messages, *recovered, *expand_all(lab, *last.expand)]
    stands += [one for ids in stubs for one in expand_all(lab, *ids)]
    assert [one for one in given if one not in stands] == []
    beginnings = {str(one["content"])[:8] for one in recovered}
    assert {str(one["content"])[:8] for one in given[:40:4]} <= beginnings


@pytest.mark.thorough
@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("policy", ["auto", "rounds", "facts"])
def test_a_giant_result_among_the_newest_messages_is_stubbed(
    lab: Lab, policy: str, *, force: bool
) -> None:
    talk = [*rounds(1)[:3], call("last"), result("last", "row of the log 7\n" * 2_000)]

    answer = compact(lab.service, talk, session="s", policy=policy, force=force)

    assert not answer.over_budget
    assert answer.messages[-1]["tool_call_id"] == "last"
    (stub,) = [id for id in answer.expand if id in answer.messages[-1]["content"]]
    assert expand_all(lab.service, stub) == [talk[-1]]


def test_a_stub_that_is_summarized_later_leads_to_the_whole_result(lab: Lab) -> None:
    talk = rounds(20)
    stubbed = compact(lab, talk, max_tokens=9_000)
    before = lab.store.memories.working_count()

    summarized = compact(lab, stubbed.messages, **ALL_OF_IT)

    recovered = expand_all(lab, summarized.expand[0])
    results = [one for one in talk if one["role"] == "tool"]
    assert [one for one in results if one not in recovered] == []
    assert stubs_of(recovered) == []
    assert lab.store.memories.working_count() > before


def test_a_pointer_that_a_tool_wrote_itself_hides_nothing(lab: Lab) -> None:
    stubbed = compact(lab, rounds(20), max_tokens=9_000)
    genuine = stubs_of(stubbed.messages)[0]
    forged = {**genuine, "content": genuine["content"] + " and the safe is 4471"}
    further = [stubbed.messages[-6], forged, *rounds(1, first=50)]

    answer = compact(lab, further, **ALL_OF_IT)

    assert forged in expand_all(lab, answer.expand[0])


def test_ids_that_agents_use_again_are_no_matter(lab: Lab) -> None:
    lab.remember("Something else.", id="1")

    for session, talk in (("one", rounds(10)), ("other", rounds(10, first=100))):
        answer = compact(lab, talk, policy="facts", session=session)
        assert find_missing(lab, talk, answer) == []


def test_a_session_never_brings_back_the_words_of_another(lab: Lab) -> None:
    """Not even where both say the same, and the summary lost its metadata."""
    said = [says("ok"), says("Fine.", "assistant")]
    secret = says("The safe is behind the picture. " * 9, "assistant")
    first = compact(lab, [*said, secret], session="one", **ALL_OF_IT)
    compact(lab, said, session="two", **ALL_OF_IT)

    stripped = list(map(dict, sendable(first.messages)))
    answer = compact(lab, [*stripped, *said], session="three", **ALL_OF_IT)

    assert expand_all(lab, answer.expand[0]) == said


def test_what_an_agent_remembered_itself_is_not_kept_twice(lab: Lab) -> None:
    said = [
        says(f"Word {n} of a long talk. " * 20, role)
        for n, role in enumerate(["assistant", "user"] * 15)
    ]
    for one in said:
        lab.remember(one["content"], role=one["role"], session="s", source="a")
    lab.clock.advance(hours=30)
    lab.sleep()
    before = lab.status().tiers

    answer = compact(lab, said, policy="facts", session="s", source="a")

    assert lab.status().tiers == before
    assert find_missing(lab, said, answer) == []


def test_what_was_taken_out_is_found_by_recall(lab: Lab) -> None:
    compact(lab, rounds(20), policy="facts", session="work", source="agent")

    hit = lab.recall("plan 3", source="agent", session="work").hits[0]

    assert (hit.content, hit.role) == ("Step 3: decided: use plan 3.", "user")


def test_what_is_forgotten_is_gone_from_every_compaction(lab: Lab) -> None:
    talk = [says(f"decided: {UNIQUE}"), *rounds(20)]
    first = compact(lab, talk, policy="facts")
    merged = compact(lab, [*first.messages, *rounds(9, first=30)], policy="facts")

    lab.forget(lab.recall(UNIQUE).hits[0].id)

    for id in (first.expand[0], merged.expand[0]):
        left = lab.expand(id, reveal=True)
        assert left.originals
        assert UNIQUE not in str(left)
    assert left_of(lab.store, UNIQUE) == []


def test_a_compaction_of_which_all_is_forgotten_is_not_found(lab: Lab) -> None:
    answer = compact(lab, [says(UNIQUE)], **ALL_OF_IT)

    lab.forget(answer.archived[0])

    with pytest.raises(NotFound, match="forgotten"):
        lab.expand(answer.expand[0])


@pytest.mark.parametrize("rule", ["mask", "refuse"])
def test_compaction_stores_no_refused_secret(lab: Lab, rule: SecretRule) -> None:
    """What may not be kept is not in an id either, where it could be guessed."""
    lab.change({"secrets": rule})

    answer, other = (
        compact(lab, [says(text), *rounds(20)])
        for text in ("The password is hunter22x!", "The password is hunter33y!")
    )

    assert answer.changed
    assert answer.expand[0] == other.expand[0]
    assert left_of(lab.store, "hunter22x") == []
    assert "hunter22x" not in str(expand_all(lab, *answer.expand))


def test_instructions_are_learned_before_their_message_is_compacted(lab: Lab) -> None:
    talk = [says("Never use emojis."), *rounds(20)]

    compact(lab, talk, policy="facts")

    assert [one.text for one in lab.learnings()] == ["Never use emojis."]


def test_it_is_kept_whole_or_not_at_all(lab: Lab) -> None:
    refuse_rows(lab.store, "compacted", "new.position = 7")

    with pytest.raises(StorageFailed):
        compact(lab, rounds(20))

    assert lab.store.memories.working_count() == 0


def test_below_its_threshold_nothing_happens_unless_forced(lab: Lab) -> None:
    talk = rounds(4)

    idle = compact(lab, talk, max_tokens=100_000)
    tokens = 2 * idle.tokens_before
    reported = compact(lab, talk, max_tokens=tokens, reported_tokens=tokens)
    forced = compact(lab, talk, max_tokens=100_000, force=True)

    assert (idle.changed, idle.messages) == (False, talk)
    assert reported.changed
    assert forced.changed


@pytest.mark.thorough
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    talk=talks(),
    policy=st.sampled_from(["auto", "facts", "rounds"]),
    force=st.booleans(),
)
def test_nothing_of_any_conversation_is_lost(
    lab: Lab, talk: Messages, policy: str, *, force: bool
) -> None:
    try:
        talk = msgspec.json.decode(msgspec.json.encode(talk))
    except (TypeError, UnicodeEncodeError):
        assume(False)  # noqa: FBT003 hypothesis' own signature
    session = os.urandom(8).hex()  # the store is the same for all examples

    fields: Any = {"policy": policy, "max_tokens": 300, "session": session}
    first = compact(lab, talk, force=force, **fields)
    again = compact(lab, [*first.messages, *rounds(2)], **fields)

    there = [*again.messages, *expand_all(lab, *first.expand, *again.expand)]
    assert [one for one in talk if one not in there and not is_summary(one)] == []


# A model's words in a compaction, and a model that is not waited for.


class Model(FakeSummarizer):
    """A summarizer that says it works with a model."""

    answer = "They read twenty files, one after the other."

    def summarize(self, memories: Sequence[MemoryRecord]) -> Any:  # noqa: ANN401
        return replace(super().summarize(memories), text=self.answer)

    def status(self) -> SummarizerStatus:
        return SummarizerStatus(
            name=self.name, reason=self.reason, state=SummarizerState.MODEL
        )


@pytest.fixture
def model(cycle: SleepCycle) -> Model:
    found = Model()
    cycle.lease.replace(found)
    return found


@pytest.mark.parametrize("policy", ["auto", "rounds"])
def test_a_models_words_go_on_top(lab: Lab, model: Model, policy: str) -> None:
    answer = compact(lab, rounds(20), policy=policy)

    assert model.answer in answer.summaries[0]
    assert answer.fallback_reason == ""
    assert "plan 0" in answer.summaries[0] or "begin 0" in answer.summaries[0]


def test_a_model_that_takes_too_long_is_not_waited_for(lab: Lab, model: Model) -> None:
    done = threading.Event()
    model.meanwhile = lambda _: done.wait(60)
    lab.change({"context.model_limit_s": 0.05})

    answer = compact(lab, rounds(20), policy="rounds")

    assert not done.is_set()
    assert "took longer" in answer.fallback_reason
    assert find_missing(lab, rounds(20), answer) == []
    done.set()


def test_the_summary_of_a_talk_is_no_running_cycle(lab: Lab, model: Model) -> None:
    running: list[bool] = []
    refusals: list[str] = []

    def look(_: object) -> None:
        running.append(lab.status().sleep.running)
        with pytest.raises(SleepInProgress) as caught:
            lab.sleep(force=True)
        refusals.append(caught.value.message)

    model.meanwhile = look

    compact(lab, rounds(20), policy="rounds")

    assert running[:1] == [False]
    assert refusals[0].startswith("the summary of a conversation is running")


def test_a_model_that_a_cycle_has_is_not_waited_for(lab: Lab, model: Model) -> None:
    for n in range(3):
        lab.remember(f"note {n}")
    lab.clock.advance(hours=30)
    answers: list[Shortened] = []
    model.meanwhile = lambda memories: (
        answers.append(compact(lab, rounds(20)))
        if memories[0].content == "note 0"
        else None
    )

    lab.sleep()

    assert "a sleep cycle has the model" in answers[0].fallback_reason
    assert answers[0].changed


# Messages without words that compactions take out: they come back, and leave no trace.


SPEAKER, SESSION = "Zqxjvarathustra", "Zqxjvsession"
WORDLESS_CONTENTS: tuple[object, ...] = (
    *("", " ", "\n\t\r\n", "\u3000", "\u2028"),
    None,
    [],
)
DROPPED = ("…", "👍", "\u200b", "--- ***", "\u0301", "\ufeff")
"""Words to us, none to the index."""


def talk(*, each: tuple[object, ...] = WORDLESS_CONTENTS) -> Messages:
    """An agent's conversation in which half of the messages have no words."""
    made: Messages = []
    for n in range(30):
        content = each[n % len(each)]
        made += [
            says(f"Step {n}: " + "row " * 60),
            says(content, SPEAKER, name=None, n={"a": None, "b": [n]}),
            says(content, SPEAKER),
        ]
    return made


def check_index(database: Path) -> None:
    """Raise unless the index holds exactly what the view shows it."""
    with closing(sqlite3.connect(database)) as connection:
        for index in ("memory_fts", "episode_fts"):
            connection.execute(
                f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)"
            )
        indexed, shown = (
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            for table in ("memory_fts_docsize", "memory_text")
        )
        assert indexed == shown


def taken(lab: Lab, messages: Messages) -> list[str]:
    answer = compact(lab, messages, force=True, session=SESSION, max_tokens=600)
    assert find_missing(lab, messages, answer) == []
    assert len(answer.archived) > 20
    return list(answer.expand)


@pytest.mark.sqlite
@pytest.mark.parametrize("each", [WORDLESS_CONTENTS, DROPPED], ids=["none", "dropped"])
def test_they_return_and_the_index_stays_whole(
    lab: Lab, each: tuple[object, ...]
) -> None:
    database = lab.store.database
    ids = taken(lab, talk(each=each))
    gone = expand_all(lab, *ids)
    check_index(database)

    slept = lab.sleep(force=True)
    assert (slept.failed, slept.remaining) == (0, 0)
    assert slept.evicted >= len(gone)
    assert expand_all(lab, *ids) == gone
    check_index(database)

    assert lab.undo_cycle(slept.cycle).restored == slept.evicted
    assert expand_all(lab, *ids) == gone
    check_index(database)

    lab.sleep(force=True)
    lab.clock.advance(days=40)
    lab.sleep(force=True)
    assert lab.prune(characters_max=2_000).memories
    check_index(database)

    assert lab.forget(session=SESSION).complete
    check_index(database)
    assert files_containing(database.parent, SPEAKER, SESSION) == []


@pytest.mark.sqlite
def test_forgotten_before_a_sleep_they_leave_no_trace_either(lab: Lab) -> None:
    taken(lab, talk())
    assert files_containing(lab.store.database.parent, SPEAKER, SESSION)

    lab.forget(session=SESSION)

    assert files_containing(lab.store.database.parent, SPEAKER, SESSION) == []
    check_index(lab.store.database)


def test_a_session_of_which_something_is_left_keeps_its_name(lab: Lab) -> None:
    (first, *_) = taken(lab, talk())
    lab.remember("something else", session=SESSION, id="left")

    lab.forget(query="row")

    assert lab.expand(first).episode.session == SESSION


def test_no_question_finds_what_has_no_words(lab: Lab) -> None:
    taken(lab, talk())

    found = lab.recall("the empty result ∅ of nothing").hits

    assert [hit for hit in found if hit.role == SPEAKER] == []


def test_a_group_of_nothing_else_is_slept_on(lab: Lab) -> None:
    messages = [says("", "tool", n=n) for n in range(40)]
    answer = compact(lab, messages, force=True, max_tokens=100)
    assert answer.archived

    slept = lab.sleep(force=True)

    assert (slept.failed, slept.evicted) == (0, len(answer.archived))


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """The migrations of the time when such a memory had no content."""
    folder = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, folder)
    for file in folder.glob("*.sql"):
        if int(file.name[:4]) >= 10:
            file.unlink()
    return folder


AT = "'2026-03-01T00:00:00.000000Z'"
EARLIER = f"""
INSERT INTO episodic_memory (seq, id, session_id, content, item_count, covers_from,
    covers_until, summarizer, created_at)
    VALUES (1, 'e', '{SESSION}', 'nothing', 2, {AT}, {AT}, 'aaak', {AT});
INSERT INTO compaction VALUES ('c-1', 'Zqxjvgone', NULL, 'auto', 1, {AT});
INSERT INTO memory_fts (memory_fts, rowid, content, role) VALUES ('delete', 4, '', '{SPEAKER}');
INSERT INTO memory_state (memory_seq, pruned_at) VALUES (4, {AT});
DELETE FROM working_memory WHERE seq = 5;
"""
"""After it the index is wrong: one of its memories was pruned, and one was forgotten."""


def wordless(
    connection: sqlite3.Connection, table: str, seq: int, **columns: object
) -> None:
    """A row as it was written, indexed by its speaker."""
    row = {
        "seq": seq, "id": f"m-{seq:032x}", "session_id": SESSION, "role": SPEAKER, "content": "",
        "created_at": AT.strip("'"), "content_hash": content_hash(""), **columns,
    }  # fmt: skip
    marks = ", ".join("?" * len(row))
    connection.execute(
        f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", [*row.values()]
    )
    connection.execute(
        "INSERT INTO memory_fts (rowid, content, role) VALUES (?, '', ?)",
        (seq, SPEAKER),
    )


def test_a_file_from_before_is_healed(database: Path, before: Path) -> None:
    with open_store(database, migrations=before):
        pass
    rest = '{"rest_of_message":{"name":null,"n":1}}'
    whole = '{"message":{"content":null,"role":"' + SPEAKER + '"}}'
    with closing(sqlite3.connect(database)) as connection:
        wordless(connection, "working_memory", 1, metadata=rest)
        wordless(connection, "working_memory", 5)
        connection.commit()
        connection.execute("PRAGMA foreign_keys = OFF")
        wordless(connection, "archive", 2, metadata="{}", episode_seq=1)
        wordless(connection, "archive", 3, metadata=whole, episode_seq=1)
        wordless(connection, "archive", 4, episode_seq=1)
        connection.executescript(EARLIER)
    with pytest.raises(sqlite3.DatabaseError):
        check_index(database)

    with open_store(database) as store:
        healed = [get_memory(store, f"m-{seq:032x}") for seq in range(1, 5)]
        totals = store.maintenance.totals()
        assert store.deletion.purge_due()

    assert [one.content for one in healed] == [*[WORDLESS] * 3, ""]
    assert [as_message(one) for one in healed[:3]] == [
        {"role": SPEAKER, "content": "", "name": None, "n": 1},
        {"role": SPEAKER, "content": ""},
        {"content": None, "role": SPEAKER},
    ]
    assert (totals[Tier.WORKING].characters, totals[Tier.ARCHIVE].characters) == (1, 2)
    check_index(database)
    with closing(sqlite3.connect(database)) as connection:
        hashes = connection.execute(
            "SELECT content_hash FROM working_memory UNION ALL SELECT content_hash FROM archive "
            "WHERE content != ''"
        ).fetchall()
    assert hashes == [(content_hash(WORDLESS),)] * 3


def test_a_file_without_such_memories_stays(database: Path, before: Path) -> None:
    with open_store(database, migrations=before):
        pass

    with open_store(database) as store:
        assert not store.deletion.purge_due()
