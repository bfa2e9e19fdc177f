"""A newer statement ends an older one: recall shows both, and no context tells it as in force."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mnemosyned import Memory
from mnemosyned.errors import NotFound
from mnemosyned.memory.values import Tier
from mnemosyned.verbs.retention import Forget


class StoppedClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 3, 1, 9, tzinfo=UTC)

    def now(self) -> datetime:
        self.moment += timedelta(minutes=1)
        return self.moment


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock()


@pytest.fixture
def memory(database: Path, blank: Path, clock: StoppedClock) -> Iterator[Memory]:
    shutil.copy(blank, database)
    grace: Any = {"forget.grace_hours": 24}
    with Memory(database, clock=clock, **grace) as opened:
        yield opened


OLD = "The staging server listens on port 8080."
NEW = "The staging server now listens on port 9090."


def remember_port(memory: Memory, clock: StoppedClock) -> tuple[str, str]:
    """Remember the two statements three days apart; return their ids."""
    old = memory.remember(OLD, session="a", source="codex", role="user")
    clock.moment += timedelta(days=3)
    new = memory.remember(NEW, session="b", source="codex", role="user")
    return old.id, new.id


def test_recall_shows_the_successor_first_and_until_when_the_older_applied(
    memory: Memory, clock: StoppedClock
) -> None:
    old, new = remember_port(memory, clock)

    hits = memory.recall("which port did the staging server listen on before?").hits

    assert [hit.id for hit in hits] == [new, old]
    (ended,) = hits[1].ended
    assert (ended.sentence, ended.successor, ended.by) == (OLD, NEW, new)
    assert ended.note == f"until 4 March 2026, then: {NEW}"
    assert not hits[0].ended


def test_an_ending_is_found_after_a_sleep_with_the_original(
    memory: Memory, clock: StoppedClock
) -> None:
    old, _ = remember_port(memory, clock)
    memory.sleep(force=True)

    hits = memory.recall("staging server port").hits

    (line,) = [line for hit in hits for line in hit.lines if line.id == old]
    assert line.ended[0].successor == NEW


def test_a_summary_no_longer_tells_what_was_ended_after_it_was_written(
    memory: Memory, clock: StoppedClock
) -> None:
    for text in (
        OLD,
        *(f"Report {n} of the harbor is at desk {n}." for n in range(12)),
    ):
        memory.remember(text, session="a", source="codex", role="user")
    memory.sleep(force=True)
    assert OLD in memory.list(tier=Tier.EPISODIC).episodes[-1].content

    clock.moment += timedelta(days=3)
    memory.remember(NEW, session="b", source="codex", role="user")
    (ended,) = memory.endings().endings

    assert OLD not in memory.list(tier=Tier.EPISODIC).episodes[-1].content
    memory.undo_ending(ended.id)
    assert OLD in memory.list(tier=Tier.EPISODIC).episodes[-1].content


def test_a_summary_leaves_out_what_was_ended_before(memory: Memory) -> None:
    reports = [f"Report {n} of the harbor is at desk {n}." for n in range(12)]
    for text in (OLD, *reports, NEW):
        memory.remember(text, session="a", source="codex", role="user")
    memory.sleep(force=True)

    (episode,) = memory.list(tier=Tier.EPISODIC).episodes
    assert OLD not in episode.content
    assert len(memory.expand(episode.id).originals) == 14


def test_a_learning_of_an_ended_sentence_is_not_in_force(memory: Memory) -> None:
    memory.remember(
        "We always use Redis for the session cache.", session="a", role="user"
    )
    assert len(memory.learnings().learnings) == 1

    memory.remember(
        "We no longer use Redis for the session cache.", session="a", role="user"
    )
    memory.endings()

    texts = [learning.text for learning in memory.learnings().learnings]
    assert not any("always use Redis" in text for text in texts)


def test_a_context_says_until_when_a_recalled_statement_applied(
    memory: Memory, clock: StoppedClock
) -> None:
    remember_port(memory, clock)

    system = memory.context("Which port does the staging server listen on?").system

    assert f"(until 4 March 2026, then: {NEW})" in system
    (injection,) = memory.injections().injections
    assert any(OLD in line.text for line in injection.lines)
    assert not any(OLD in line.text and NEW in line.text for line in injection.lines)


def test_the_ledger_has_all_words_of_a_memory_that_reads_like_a_note(
    memory: Memory,
) -> None:
    memory.remember(
        "The staging server\n(until it is replaced) listens on port 8080.", session="a"
    )

    memory.context("Which port does the staging server listen on?")

    (injection,) = memory.injections().injections
    assert "port 8080" in injection.lines[0].text


def test_only_what_is_ended_is_closed_among_two_hundred_others(
    memory: Memory, clock: StoppedClock
) -> None:
    old = memory.remember(OLD, session="a", source="codex", role="user")
    for number in range(200):
        memory.remember(
            (
                f"Ticket {number}: the export of report {number} is slow on page {number % 7}.",
                f"I looked at the server logs of host {number}, nothing unusual on port {number}.",
                f"Let's also add a test for case {number} of the staging deploy script.",
                f"Should the server of team {number} move to another port?",
            )[number % 4],
            session=f"s{number // 20}",
            source="codex",
            role="user" if number % 2 else "assistant",
        )
    clock.moment += timedelta(days=3)
    new = memory.remember(NEW, session="b", source="codex", role="user")

    endings = memory.endings().endings

    assert [(each.id, each.by) for each in endings] == [(old.id, new.id)]


def test_undoing_what_was_not_ended_says_so(memory: Memory) -> None:
    with pytest.raises(NotFound, match="no statement of 'nobody' is ended"):
        memory.undo_ending("nobody")


def test_statements_of_another_project_or_source_stay(
    memory: Memory,
) -> None:
    memory.remember(OLD, session="a", source="mail", role="user")
    memory.remember(NEW, session="b", source="codex", role="user")

    assert memory.endings().endings == []


def test_what_one_speaker_says_of_himself_ends_nothing_of_another(
    memory: Memory,
) -> None:
    home = "I live in a flat in Berlin."
    memory.remember(home, session="a", role="Anna")
    moved = memory.remember(home, session="a", role="Ben")
    memory.remember("I no longer live in a flat in Berlin.", session="b", role="Ben")

    assert [each.id for each in memory.endings().endings] == [moved.id]


def test_an_edit_takes_an_ending_back_or_makes_one(
    memory: Memory, clock: StoppedClock
) -> None:
    old, new = remember_port(memory, clock)
    assert memory.endings().endings

    memory.edit(new, text="The staging server is slow.")
    assert memory.endings().endings == []

    memory.edit(new, text=NEW)
    assert [each.id for each in memory.endings().endings] == [old]


def test_an_edited_statement_is_ended_by_newer_memories(
    memory: Memory, clock: StoppedClock
) -> None:
    old, new = remember_port(memory, clock)
    memory.edit(old, text="The kitchen is painted blue.")
    assert memory.endings().endings == []

    memory.edit(old, text=OLD)

    assert [(each.id, each.by) for each in memory.endings().endings] == [(old, new)]


@pytest.mark.parametrize(
    "forgotten", [Forget(session="a"), Forget(session="b"), Forget(source="codex")]
)
@pytest.mark.parametrize("undone", [False, True])
def test_a_memory_that_is_put_back_has_its_endings_again(
    memory: Memory, clock: StoppedClock, forgotten: Forget, *, undone: bool
) -> None:
    old, new = remember_port(memory, clock)
    assert memory.endings().endings
    if undone:
        memory.undo_ending(old)
    receipt = memory.call(forgotten)
    assert memory.endings().endings == []

    memory.restore(receipt.call)

    (ending,) = memory.endings().endings
    assert (ending.id, ending.by, ending.undone) == (old, new, undone)


def test_what_an_assistant_says_of_itself_ends_nothing_of_another_project(
    memory: Memory,
) -> None:
    before, after = (
        "I use Redis for the sessions.",
        "I no longer use Redis for the sessions.",
    )
    memory.remember(before, session="a", source="mail", role="assistant")
    said = memory.remember(before, session="a", source="mail", role="user")
    memory.remember(after, session="b", source="codex", role="assistant")
    assert memory.endings().endings == []

    memory.remember(after, session="b", source="codex", role="user")

    assert [each.id for each in memory.endings().endings] == [said.id]


def test_a_week_tells_a_statement_again_whose_ending_was_undone(
    memory: Memory, clock: StoppedClock
) -> None:
    clock.moment += timedelta(days=1)  # it is a Monday
    for day in range(3):
        for text in (
            OLD if day == 0 else NEW if day == 1 else "The parcel arrived at noon.",
            *(f"Report {day}{n} of the harbor is at desk {n}." for n in range(12)),
        ):
            memory.remember(text, session=f"s{day}", source="codex", role="user")
        clock.moment += timedelta(days=1)
    clock.moment += timedelta(days=40)
    memory.sleep(force=True)
    (week,) = memory.list(tier=Tier.EPISODIC, level="week").episodes
    assert OLD not in week.content

    memory.undo_ending(memory.endings().endings[0].id)

    (week,) = memory.list(tier=Tier.EPISODIC, level="week").episodes
    assert OLD in week.content


def test_a_new_run_reads_what_an_earlier_one_left(
    tmp_path: Path, clock: StoppedClock
) -> None:
    with Memory(tmp_path / "memory.db", clock=clock) as first:
        old, _ = remember_port(first, clock)
    with Memory(tmp_path / "memory.db", clock=clock) as second:
        assert [each.id for each in second.endings().endings] == [old]


def test_get_shows_what_ended_a_memory_with_secrets_masked(
    memory: Memory,
) -> None:
    old = memory.remember("The wifi password is tulip-4711-Xy.", session="a")
    memory.remember("The wifi password is now rose-0815-Zq.", session="a")
    memory.endings()

    (ended,) = memory.get(old.id).ended

    assert "tulip-4711-Xy" not in ended.sentence
    assert "rose-0815-Zq" not in ended.successor
    (ended,) = memory.get(old.id, reveal=True).ended
    assert ended.successor == "The wifi password is now rose-0815-Zq."
