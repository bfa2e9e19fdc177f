"""Two daemons on one database: one memory, whichever of them is asked, and whichever is killed."""

import threading
import time

import pytest
from e2e.conftest import Start, start
from e2e.daemons import Daemon, eventually

from mnemosyned import Client
from mnemosyned.errors import DaemonUnreachable, NotFound, SleepInProgress
from mnemosyned.memory.values import Tier
from mnemosyned.paths import shipped
from mnemosyned.storage.postgres.store import open_store

__all__ = ["start"]

pytestmark = pytest.mark.postgres

GROUPS = 60
OLD = "2026-01-01T10:00:00Z"


@pytest.fixture
def pair(start: Start, dsn: str) -> tuple[Daemon, Daemon]:
    return start("--database", dsn), start("--database", dsn)


def found(client: Client, question: str) -> list[str]:
    return [hit.id for hit in client.recall(question).hits]


def remember_groups(daemon: Daemon) -> list[str]:
    """Memories of many groups; their ids."""
    memories = [
        {
            "id": f"g{group}-{number}",
            "content": f"Step {number} of matter {group} was done by Huber at the mill.",
            "session": f"s{group}",
            "created_at": OLD,
        }
        for group in range(GROUPS)
        for number in range(4)
    ]
    assert daemon.post("remember_many", memories=memories).status == 200
    return [str(memory["id"]) for memory in memories]


def assert_in_one_episode_each(client: Client, ids: list[str]) -> None:
    rows = client.log(limit=1_000).rows
    promoted = [row.episode for row in rows if row.episode and not row.level]
    sources = [
        id
        for episode in promoted
        if (record := client.get(episode).episode)
        for id in record.summary_of
    ]
    assert sorted(sources) == sorted(ids)
    tiers = client.status().tiers
    assert (tiers[Tier.WORKING].count, tiers[Tier.ARCHIVE].count) == (0, len(ids))


def test_what_one_remembers_edits_and_forgets_the_other_shows_at_once(
    pair: tuple[Daemon, Daemon],
) -> None:
    first, second = pair
    with first.client() as here, second.client() as there:
        assert found(there, "marzipan") == []
        here.remember("Marzipan goes to the left shelf.", id="sweet")
        assert found(there, "marzipan") == ["sweet"]

        there.edit("sweet", text="Nougat goes to the left shelf.")
        assert found(here, "marzipan") == []
        assert found(here, "nougat") == ["sweet"]

        here.forget("sweet", now=True)
        assert found(there, "nougat") == []
        with pytest.raises(NotFound):
            there.get("sweet")


def test_a_word_is_found_that_came_while_another_memory_went(
    pair: tuple[Daemon, Daemon],
) -> None:
    first, second = pair
    with first.client() as here, second.client() as there:
        here.remember("Nougat goes to the left shelf.", id="old")
        assert found(there, "marzipan") == []
        here.forget("old", now=True)
        here.remember("Marzipan goes to the right shelf.", id="new")
        # As many memories as before: only the words are others.
        assert found(there, "marzipan") == ["new"]


def test_what_one_learns_the_other_tells(pair: tuple[Daemon, Daemon]) -> None:
    first, second = pair
    with first.client() as here, second.client() as there:
        assert list(there.learnings()) == []
        learned = here.learn("Always answer in German.").learning
        assert [learning.id for learning in there.learnings()] == [learned.id]
        there.remove_learning(learned.id)
        assert list(here.learnings()) == []


def test_two_that_sleep_at_once_make_one_episode_of_each_group(
    pair: tuple[Daemon, Daemon],
) -> None:
    first, second = pair
    ids = remember_groups(first)

    def sleep_to_the_end(daemon: Daemon) -> None:
        with daemon.client() as client:
            while client.status().tiers[Tier.WORKING].count:
                try:
                    client.sleep()
                except SleepInProgress:
                    time.sleep(0.02)

    sleepers = [
        threading.Thread(target=sleep_to_the_end, args=(daemon,)) for daemon in pair
    ]
    for sleeper in sleepers:
        sleeper.start()
    for sleeper in sleepers:
        sleeper.join()

    with second.client() as client:
        assert_in_one_episode_each(client, ids)


def test_one_that_is_killed_amid_a_sleep_leaves_the_rest_to_the_other(
    pair: tuple[Daemon, Daemon],
) -> None:
    first, second = pair
    ids = remember_groups(first)
    sleeping = threading.Thread(target=sleep_until_killed, args=(first,))
    sleeping.start()
    with second.client() as client:
        eventually(
            lambda: client.status().tiers[Tier.ARCHIVE].count, "a group was promoted"
        )
        first.kill()
        sleeping.join()

        def slept() -> bool:
            try:
                client.sleep()
            except SleepInProgress:  # the server has not noticed its death yet
                return False
            return not client.status().tiers[Tier.WORKING].count

        eventually(slept, "the other did the rest")
        assert_in_one_episode_each(client, ids)


def sleep_until_killed(daemon: Daemon) -> None:
    with daemon.client() as client, pytest.raises(DaemonUnreachable):
        client.sleep()


def test_one_that_stops_while_the_other_sleeps_leaves_it_to_that_one(
    start: Start, dsn: str
) -> None:
    daemon = start("--database", dsn, MNEMOSYNE_SLEEP_ON_SHUTDOWN="true")
    remember_groups(daemon)

    with (
        open_store(dsn, migrations=shipped("migrations") / "postgres") as other,
        other.sleep.claim(),
    ):
        assert daemon.stop() == 0

    (left,) = daemon.events("final_consolidation_left")
    assert left["level"] == "info"
    assert not daemon.events("final_consolidation_failed")
