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
from typing import Any

import msgspec
import pytest
from domain.talks import talks
from hypothesis import HealthCheck, assume, given, settings, strategies as st
from support.compactions import (
    Messages,
    anthropic_rounds,
    compact,
    expand_all,
    find_missing,
    rounds,
)
from support.fakes import FakeSummarizer, files_containing
from support.leftovers import left_of
from support.refusals import refuse_rows
from support.services import Lab, undo_cycle
from support.settings import change

from mnemosyned import sendable
from mnemosyned.conversation.archived import WORDLESS, as_message
from mnemosyned.conversation.summary_message import is_summary
from mnemosyned.errors import NotFound, ShuttingDown, SleepInProgress, StorageFailed
from mnemosyned.memory.forgetting import content_hash
from mnemosyned.memory.masking import SecretRule
from mnemosyned.memory.values import MemoryRecord, SummarizerState, SummarizerStatus
from mnemosyned.paths import shipped
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import open_store
from mnemosyned.verbs.conversation import Shortened

UNIQUE = "Zqxjv48213Kwyz"


@pytest.mark.parametrize("policy", ["auto", "facts", "rounds"])
@pytest.mark.parametrize(
    "talk", [rounds(20), anthropic_rounds(20)], ids=["openai", "anthropic"]
)
def test_compacted_messages_expand_word_for_word(
    service: MemoryService, policy: str, talk: Messages
) -> None:
    answer = compact(service, talk, policy=policy)

    assert answer.changed
    assert answer.tokens_after < answer.tokens_before
    assert answer.expand
    assert find_missing(service, talk, answer) == []
    assert len(answer.archived) >= len(
        [one for one in talk if one not in answer.messages]
    )


def test_expanded_messages_stand_in_their_order(service: MemoryService) -> None:
    talk = rounds(20)

    answer = compact(service, talk, policy="facts")

    gone = [one for one in talk if one not in answer.messages]
    assert expand_all(service, answer.expand[0]) == gone


@pytest.mark.parametrize("policy", ["auto", "facts", "rounds"])
def test_repeating_a_compaction_changes_nothing(lab: Lab, policy: str) -> None:
    first = compact(lab.service, rounds(20), policy=policy)
    before = lab.status().tiers
    lab.clock.advance(hours=1)

    again = compact(lab.service, rounds(20), policy=policy)
    upon_it = compact(lab.service, first.messages, policy=policy)

    assert again == first
    assert lab.status().tiers == before
    assert not upon_it.changed


@pytest.mark.parametrize("stripped", [False, True])
@pytest.mark.parametrize("policy", ["auto", "facts"])
def test_a_merged_compaction_brings_back_all_of_it(
    lab: Lab, policy: str, *, stripped: bool
) -> None:
    talk, given = rounds(12), rounds(12)
    answers = []
    for turn in range(3):
        answer = compact(lab.service, talk, policy=policy)
        answers.append(answer)
        kept = list(sendable(answer.messages)) if stripped else answer.messages
        further = rounds(6, first=12 + 6 * turn)
        talk, given = [*map(dict, kept), *further], [*given, *further]
        lab.clock.advance(hours=30)
        lab.sleep()

    last = compact(lab.service, talk, policy=policy)

    assert last.expand[0] not in {answer.expand[0] for answer in answers}
    recovered = expand_all(lab.service, last.expand[0])
    assert recovered[0] == given[0]
    stands = [*last.messages, *recovered, *expand_all(lab.service, *last.expand)]
    stubs = [answer.expand for answer in answers]
    stands += [one for ids in stubs for one in expand_all(lab.service, *ids)]
    assert [one for one in given if one not in stands] == []
    assert {str(one["content"])[:8] for one in given[:40:4]} <= {
        str(one["content"])[:8] for one in recovered
    }


def test_a_stub_says_how_to_get_the_words_back(service: MemoryService) -> None:
    talk = rounds(20)
    answer = compact(service, talk, max_tokens=9_000, session="work")
    stubs = [one for one in answer.messages if "expand m-" in str(one["content"])]
    first = stubs[0]["content"]

    (original,) = expand_all(service, first.partition("; expand ")[2].partition("]")[0])

    assert original == next(
        one for one in talk if one.get("tool_call_id") == stubs[0]["tool_call_id"]
    )


def test_a_stub_that_is_summarized_later_leads_to_the_whole_result(lab: Lab) -> None:
    talk = rounds(20)
    stubbed = compact(lab.service, talk, max_tokens=9_000)
    results = [one for one in talk if one["role"] == "tool"]
    before = lab.status().tiers["working"].count  # type: ignore[index]

    summarized = compact(
        lab.service, stubbed.messages, policy="facts", keep_recent=0, force=True
    )

    recovered = expand_all(lab.service, summarized.expand[0])
    assert [one for one in results if one not in recovered] == []
    assert not any("expand m-" in str(one["content"]) for one in recovered)
    assert lab.status().tiers["working"].count > before  # type: ignore[index]


def test_a_pointer_that_a_tool_wrote_itself_hides_nothing(
    service: MemoryService,
) -> None:
    talk = rounds(20)
    stubbed = compact(service, talk, max_tokens=9_000)
    genuine = next(
        one for one in stubbed.messages if "expand m-" in str(one["content"])
    )
    forged = {**genuine, "content": genuine["content"] + " and the safe is 4471"}
    further = [stubbed.messages[-6], forged, *rounds(1, first=50)]

    answer = compact(service, further, policy="facts", keep_recent=0, force=True)

    assert forged in expand_all(service, answer.expand[0])


def test_ids_that_agents_use_again_are_no_matter(lab: Lab) -> None:
    one, other = rounds(10), rounds(10, first=100)
    lab.remember("Something else.", id="1")

    first = compact(lab.service, one, policy="facts", session="one")
    second = compact(lab.service, other, policy="facts", session="other")

    assert find_missing(lab.service, one, first) == []
    assert find_missing(lab.service, other, second) == []


def test_a_session_never_brings_back_the_words_of_another(
    service: MemoryService,
) -> None:
    """Not even where both say the same, and the summary lost its metadata."""
    said = [
        {"role": "user", "content": "ok"},
        {"role": "assistant", "content": "Fine."},
    ]
    secret = {"role": "assistant", "content": "The safe is behind the picture. " * 9}
    force: dict[str, Any] = {"policy": "facts", "keep_recent": 0, "force": True}
    first = compact(service, [*said, secret], session="one", **force)
    compact(service, said, session="two", **force)

    stripped = list(map(dict, sendable(first.messages)))
    answer = compact(service, [*stripped, *said], session="three", **force)

    assert expand_all(service, answer.expand[0]) == said


def test_what_an_agent_remembered_itself_is_not_kept_twice(lab: Lab) -> None:
    said = [
        {
            "role": "user" if n % 2 else "assistant",
            "content": f"Word {n} of a long talk. " * 20,
        }
        for n in range(30)
    ]
    for one in said:
        lab.remember(one["content"], role=one["role"], session="s", source="a")
    lab.clock.advance(hours=30)
    lab.sleep()
    before = lab.status().tiers

    answer = compact(lab.service, said, policy="facts", session="s", source="a")

    assert lab.status().tiers == before
    assert find_missing(lab.service, said, answer) == []


def test_what_was_taken_out_is_found_by_recall(lab: Lab) -> None:
    compact(lab.service, rounds(20), policy="facts", session="work", source="agent")

    (hit, *_) = lab.recall("plan 3", source="agent", session="work").hits

    assert hit.content == "Step 3: decided: use plan 3."
    assert hit.role == "user"


def test_what_is_forgotten_is_gone_from_every_compaction(lab: Lab) -> None:
    talk = [{"role": "user", "content": f"decided: {UNIQUE}"}, *rounds(20)]
    first = compact(lab.service, talk, policy="facts")
    merged = compact(
        lab.service, [*first.messages, *rounds(9, first=30)], policy="facts"
    )
    (hit, *_) = lab.recall(UNIQUE).hits

    lab.forget(hit.id)

    for id in (first.expand[0], merged.expand[0]):
        left = lab.expand(id, reveal=True)
        assert left.originals
        assert UNIQUE not in left.episode.content
        assert UNIQUE not in str(left.originals)
    assert left_of(lab.store, UNIQUE) == []


def test_a_compaction_of_which_all_is_forgotten_is_not_found(lab: Lab) -> None:
    answer = compact(
        lab.service,
        [{"role": "user", "content": UNIQUE}],
        policy="facts",
        keep_recent=0,
        force=True,
    )

    lab.forget(answer.archived[0])

    with pytest.raises(NotFound, match="forgotten"):
        lab.expand(answer.expand[0])


@pytest.mark.parametrize("rule", ["mask", "refuse"])
def test_compaction_stores_no_secret_where_secrets_are_refused(
    lab: Lab, rule: SecretRule
) -> None:
    change(lab.settings, {"secrets": rule})
    talk = [{"role": "user", "content": "The password is hunter22x!"}, *rounds(20)]

    answer = compact(lab.service, talk)

    assert answer.changed
    assert (
        answer.expand[0] == compact(lab.service, _with_another_password(talk)).expand[0]
    )
    assert left_of(lab.store, "hunter22x") == []
    assert "hunter22x" not in str(expand_all(lab.service, *answer.expand))


def _with_another_password(talk: Messages) -> Messages:
    """What may not be kept is not in an id either, where it could be guessed."""
    return [{**talk[0], "content": talk[0]["content"].replace("22x", "33y")}, *talk[1:]]


def test_a_secret_is_shown_only_on_request(lab: Lab) -> None:
    talk = [{"role": "user", "content": "The password is hunter22x!"}, *rounds(20)]

    answer = compact(lab.service, talk)

    assert "hunter22x" not in str(lab.expand(answer.expand[0]))
    assert "hunter22x" in str(expand_all(lab.service, answer.expand[0]))


def test_instructions_are_learned_before_their_message_is_compacted(lab: Lab) -> None:
    talk = [{"role": "user", "content": "Never use emojis."}, *rounds(20)]

    compact(lab.service, talk, policy="facts")

    assert [one.text for one in lab.learnings().learnings] == ["Never use emojis."]


def test_it_is_kept_whole_or_not_at_all(lab: Lab) -> None:
    refuse_rows(lab.store, "compacted", "new.position = 7")

    with pytest.raises(StorageFailed):
        compact(lab.service, rounds(20))

    assert lab.store.memories.working_count() == 0


def test_below_its_threshold_nothing_happens_unless_forced(
    service: MemoryService,
) -> None:
    talk = rounds(4)
    tokens = compact(service, talk, max_tokens=100_000).tokens_before

    idle = compact(service, talk, max_tokens=100_000)
    reported = compact(service, talk, max_tokens=2 * tokens, reported_tokens=2 * tokens)
    forced = compact(service, talk, max_tokens=100_000, force=True)

    assert (idle.changed, idle.messages) == (False, talk)
    assert reported.changed
    assert forced.changed


def test_a_daemon_that_stops_compacts_no_more(service: MemoryService) -> None:
    service.stop_writes()

    with pytest.raises(ShuttingDown):
        compact(service, rounds(1))


# ------------------------------------------------------------------ whatever comes


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    talk=talks(),
    policy=st.sampled_from(["auto", "facts", "rounds"]),
    force=st.booleans(),
)
def test_nothing_of_any_conversation_is_lost(
    service: MemoryService, talk: Messages, policy: str, *, force: bool
) -> None:
    try:
        talk = msgspec.json.decode(msgspec.json.encode(talk))
    except (TypeError, UnicodeEncodeError):
        assume(False)  # noqa: FBT003 hypothesis' own signature
    session = os.urandom(8).hex()  # the store is the same for all examples

    first = compact(
        service, talk, policy=policy, max_tokens=300, force=force, session=session
    )
    again = compact(
        service,
        [*first.messages, *rounds(2)],
        policy=policy,
        session=session,
        max_tokens=300,
    )

    there = [*again.messages, *expand_all(service, *first.expand, *again.expand)]
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
def test_a_models_words_go_on_top_of_what_the_rules_found(
    service: MemoryService, model: Model, policy: str
) -> None:
    answer = compact(service, rounds(20), policy=policy)

    assert model.answer in answer.summaries[0]
    assert answer.fallback_reason == ""
    assert "plan 0" in answer.summaries[0] or "begin 0" in answer.summaries[0]


def test_a_model_that_takes_too_long_is_not_waited_for(lab: Lab, model: Model) -> None:
    done = threading.Event()
    model.meanwhile = lambda _: done.wait(20)
    change(lab.settings, {"context.model_limit_s": 0.05})

    answer = compact(lab.service, rounds(20), policy="rounds")

    assert not done.is_set()
    assert "took longer" in answer.fallback_reason
    assert find_missing(lab.service, rounds(20), answer) == []
    done.set()


def test_a_summary_of_a_conversation_is_not_a_cycle_that_runs(
    lab: Lab, model: Model
) -> None:
    running: list[bool] = []
    refusals: list[str] = []

    def look(_: object) -> None:
        running.append(lab.status().sleep.running)
        with pytest.raises(SleepInProgress) as caught:
            lab.sleep(force=True)
        refusals.append(caught.value.message)

    model.meanwhile = look

    compact(lab.service, rounds(20), policy="rounds")

    assert running[:1] == [False]
    assert refusals[0].startswith("the summary of a conversation is running")


def test_a_model_that_a_sleep_cycle_has_is_not_waited_for(
    lab: Lab, model: Model
) -> None:
    for n in range(3):
        lab.remember(f"note {n}")
    lab.clock.advance(hours=30)
    answers: list[Shortened] = []
    model.meanwhile = lambda memories: (
        answers.append(compact(lab.service, rounds(20)))
        if memories[0].content == "note 0"
        else None
    )

    lab.sleep()

    assert "a sleep cycle has the model" in answers[0].fallback_reason
    assert answers[0].changed


# Messages without words that compactions take out: they come back, and leave no trace.


SPEAKER, SESSION = "Zqxjvarathustra", "Zqxjvsession"
WORDLESS_CONTENTS: tuple[object, ...] = (
    "",
    " ",
    "\n\t\r\n",
    "\u3000",
    "\u2028",
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
            {"role": "user", "content": f"Step {n}: " + "row " * 60},
            {
                "role": SPEAKER,
                "content": content,
                "name": None,
                "n": {"a": None, "b": [n]},
            },
            {"role": SPEAKER, "content": content},
        ]
    return made


def check_index(database: Path) -> None:
    """Raise unless the index holds exactly what the view shows it."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(
            "INSERT INTO memory_fts (memory_fts, rank) VALUES ('integrity-check', 1)"
        )
        connection.execute(
            "INSERT INTO episode_fts (episode_fts, rank) VALUES ('integrity-check', 1)"
        )
        indexed, shown = (
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("memory_fts_docsize", "memory_text")
        )
        assert indexed == shown


def taken(service: MemoryService, messages: Messages) -> list[str]:
    answer = compact(service, messages, force=True, session=SESSION, max_tokens=600)
    assert find_missing(service, messages, answer) == []
    assert len(answer.archived) > 20
    return list(answer.expand)


@pytest.mark.sqlite
@pytest.mark.parametrize("each", [WORDLESS_CONTENTS, DROPPED], ids=["none", "dropped"])
def test_they_come_back_and_the_index_stays_whole_all_life_long(
    lab: Lab, each: tuple[object, ...]
) -> None:
    messages = talk(each=each)
    ids = taken(lab.service, messages)
    gone = expand_all(lab.service, *ids)
    check_index(lab.store.database)

    slept = lab.sleep(force=True)
    assert (slept.failed, slept.remaining) == (0, 0)
    assert slept.evicted >= len(gone)
    assert expand_all(lab.service, *ids) == gone
    check_index(lab.store.database)

    assert undo_cycle(lab.service, slept.cycle).restored == slept.evicted
    assert expand_all(lab.service, *ids) == gone
    check_index(lab.store.database)

    lab.sleep(force=True)
    lab.clock.advance(days=40)
    lab.sleep(force=True)
    assert lab.prune(characters_max=2_000).memories
    check_index(lab.store.database)

    receipt = lab.forget(session=SESSION)
    assert receipt.complete
    check_index(lab.store.database)
    assert files_containing(lab.store.database.parent, SPEAKER, SESSION) == []


@pytest.mark.sqlite
def test_forgotten_before_a_sleep_they_leave_no_trace_either(lab: Lab) -> None:
    taken(lab.service, talk())
    assert files_containing(lab.store.database.parent, SPEAKER, SESSION)

    lab.forget(session=SESSION)

    assert files_containing(lab.store.database.parent, SPEAKER, SESSION) == []
    check_index(lab.store.database)


def test_a_session_of_which_something_is_left_keeps_its_name(lab: Lab) -> None:
    (first, *_) = taken(lab.service, talk())
    lab.remember("something else", session=SESSION, id="left")

    lab.forget(query="row")

    assert lab.expand(first).episode.session == SESSION


def test_no_question_finds_what_has_no_words(lab: Lab) -> None:
    taken(lab.service, talk())

    found = lab.recall("the empty result ∅ of nothing").hits

    assert [hit for hit in found if hit.role == SPEAKER] == []


def test_a_group_of_nothing_else_is_slept_on(lab: Lab) -> None:
    messages = [{"role": "tool", "content": "", "n": n} for n in range(40)]
    answer = compact(lab.service, messages, force=True, max_tokens=100)
    assert answer.archived

    slept = lab.sleep(force=True)

    assert (slept.failed, slept.evicted) == (0, len(answer.archived))


def test_pictures_and_calls_come_back_beside_them(service: MemoryService) -> None:
    messages = [
        message
        for pair in zip(anthropic_rounds(20), talk(), strict=False)
        for message in pair
    ]

    answer = compact(service, messages, force=True, max_tokens=600)

    assert find_missing(service, messages, answer) == []


# ------------------------------------------------------- files from before


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """The migrations of the time when such a memory had no content."""
    folder = tmp_path / "migrations"
    shutil.copytree(shipped("migrations"), folder)
    for file in folder.glob("*.sql"):
        if int(file.name[:4]) >= 10:
            file.unlink()
    return folder


def wordless(
    connection: sqlite3.Connection, table: str, seq: int, **columns: object
) -> None:
    """A row as it was written, indexed by its speaker."""
    row = {
        "seq": seq, "id": f"m-{seq:032x}", "session_id": SESSION, "role": SPEAKER, "content": "",
        "created_at": "2026-03-01T00:00:00.000000Z", "content_hash": content_hash(""), **columns,
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
        connection.execute(
            "INSERT INTO episodic_memory (seq, id, session_id, content, item_count, covers_from, "
            "covers_until, summarizer, created_at) VALUES (1, 'e', ?, 'nothing', 2, "
            "'2026-03-01T00:00:00.000000Z', '2026-03-01T00:00:00.000000Z', 'aaak', "
            "'2026-03-01T00:00:00.000000Z')",
            (SESSION,),
        )
        connection.execute(
            "INSERT INTO compaction VALUES ('c-1', 'Zqxjvgone', NULL, 'auto', 1, "
            "'2026-03-01T00:00:00.000000Z')"
        )
        wordless(connection, "working_memory", 1, metadata=rest)
        wordless(connection, "archive", 2, metadata="{}", episode_seq=1)
        wordless(connection, "archive", 3, metadata=whole, episode_seq=1)
        wordless(connection, "archive", 4, episode_seq=1)  # it was pruned
        connection.execute(
            "INSERT INTO memory_fts (memory_fts, rowid, content, role) VALUES ('delete', 4, '', ?)",
            (SPEAKER,),
        )
        connection.execute(
            "INSERT INTO memory_state (memory_seq, pruned_at) "
            "VALUES (4, '2026-03-01T00:00:00.000000Z')"
        )
        wordless(connection, "working_memory", 5)  # it was forgotten
        connection.execute("DELETE FROM working_memory WHERE seq = 5")
        connection.commit()
        with pytest.raises(sqlite3.DatabaseError):
            connection.execute(
                "INSERT INTO memory_fts (memory_fts, rank) VALUES ('integrity-check', 1)"
            )

    with open_store(database, migrations=shipped("migrations")) as store:
        healed = [store.memories.get(f"m-{seq:032x}") for seq in range(1, 5)]
        totals = {
            tier.value: total for tier, total in store.maintenance.totals().items()
        }
        due = store.deletion.purge_due()

    assert [one.content for one in healed if isinstance(one, MemoryRecord)] == [
        *[WORDLESS] * 3,
        "",
    ]
    assert [as_message(one) for one in healed[:3] if isinstance(one, MemoryRecord)] == [
        {"role": SPEAKER, "content": "", "name": None, "n": 1},
        {"role": SPEAKER, "content": ""},
        {"content": None, "role": SPEAKER},
    ]
    assert (totals["working"].characters, totals["archive"].characters) == (1, 2)
    assert due
    check_index(database)
    with closing(sqlite3.connect(database)) as connection:
        hashes = connection.execute(
            "SELECT content_hash FROM working_memory UNION ALL SELECT content_hash FROM archive "
            "WHERE content != ''"
        ).fetchall()
    assert hashes == [(content_hash(WORDLESS),)] * 3


def test_a_file_without_such_memories_is_left_as_it_is(
    database: Path, before: Path
) -> None:
    with open_store(database, migrations=before):
        pass

    with open_store(database, migrations=shipped("migrations")) as store:
        assert not store.deletion.purge_due()
