"""A store's life against a plain model: nothing lost, nothing twice, nothing resurrected.

LONG_LIVES sets how many long ones are lived.
"""

import os
import shutil
import sqlite3
import tempfile
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)
from support.fakes import FakeClock

from mnemosyned.assembly.build import OpenMemory, open_memory
from mnemosyned.config.loading import load_config
from mnemosyned.errors import CannotUndo, InvalidRequest, WordsPruned
from mnemosyned.memory.consolidation import CycleStatus
from mnemosyned.memory.values import Episode, MemoryRecord, Tier
from mnemosyned.verbs.memories import (
    EditMemory,
    Expand,
    Get,
    Pin,
    Recall,
    Remember,
    Tag,
    Unpin,
    Untag,
)
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.retention import Forget, Prune, Restore
from mnemosyned.verbs.upkeep import Sleep, Undo

R = TypeVar("R")

LONG_LIVES = int(os.environ.get("LONG_LIVES", "150"))
SESSIONS = ("kitchen", "hall")
SOURCES = (None, "cook")


@dataclass(frozen=True)
class Known:
    """What the model knows of one memory."""

    word: str
    created_at: datetime
    session: str
    source: str | None
    pinned: bool = False
    tier: Tier = Tier.WORKING
    cycle: str = ""
    """Which cycle took it to the archive."""
    pruned: bool = False
    superseded: str = ""
    """The id of what took its place."""
    valid_until: datetime | None = None
    held_until: datetime | None = None
    """Until when an undo keeps it in working memory."""
    future_since: datetime | None = None
    """When a cycle first found it in the future, as the clock was set back."""
    tags: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    """Words that it had before it was edited."""

    def old(self, now: datetime) -> bool:
        """Whether a cycle takes it for its age."""
        cutoff = now - timedelta(hours=12)
        ahead = (
            self.created_at > now and self.future_since and self.future_since < cutoff
        )
        held = self.held_until is not None and self.held_until > now
        return (self.created_at < cutoff or bool(ahead)) and not held

    @property
    def content(self) -> str:
        return f"the {self.word} stands in the room"


class Lifetime(RuleBasedStateMachine):
    """Verbs in any order, over restarts and with a clock that moves both ways."""

    blank: ClassVar[Path]
    memories = Bundle("memories")
    cycles = Bundle("cycles")

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.folder = tempfile.TemporaryDirectory()
        self.room = Path(self.folder.name)
        self.database = self.room / "memory.db"
        shutil.copy(self.blank, self.database)
        self.clock = FakeClock()
        self.known: dict[str, Known] = {}
        self.gone: dict[str, Known] = {}
        self.undone: set[str] = set()
        self.numbers = iter(range(100_000))
        self.memory = self.opened()

    def opened(self) -> OpenMemory:
        overrides = {
            "database": str(self.database),
            "auto_sleep": False,
            "wm_max": 1_000,
            "embedding.encoder": "none",
        }
        config = load_config(environ={}, overrides=overrides)
        return self.stack.enter_context(open_memory(config, clock=self.clock))

    def teardown(self) -> None:
        self.stack.close()
        self.folder.cleanup()

    def call(self, request: Request[R]) -> R:
        return self.memory.service.call(request)

    # ------------------------------------------------------------- the rules

    @initialize(target=cycles)
    def begin(self) -> MultipleResults[str]:
        """A group that slept already, as what comes after sleep is what is interesting."""
        self.remember(3, 30, "kitchen", "cook", pinned=False, lasts=None)
        return self.sleep(force=False)

    @rule(
        target=memories,
        count=st.integers(1, 4),
        hours_ago=st.integers(0, 60),
        session=st.sampled_from(SESSIONS),
        source=st.sampled_from(SOURCES),
        pinned=st.booleans(),
        lasts=st.sampled_from([None, 1, 30]),
    )
    def remember(  # noqa: PLR0917
        self,
        count: int,
        hours_ago: int,
        session: str,
        source: str | None,
        pinned: bool,  # noqa: FBT001
        lasts: int | None,
    ) -> MultipleResults[str]:
        until = self.clock.now() + timedelta(hours=lasts) if lasts else None
        ids = []
        for at in range(count):
            number = next(self.numbers)
            moment = self.clock.now() - timedelta(hours=hours_ago, minutes=-at)
            moment = min(moment, self.clock.now())
            known = Known(
                f"zqx{number}jv", moment, session, source, pinned, valid_until=until
            )
            self.keep(f"m{number}", known)
            ids.append(f"m{number}")
        return multiple(*ids)

    def keep(self, id: str, known: Known, *, supersedes: str | None = None) -> None:
        answer = self.call(
            Remember(
                known.content,
                id=id,
                created_at=known.created_at,
                session=known.session,
                source=known.source,
                pinned=known.pinned,
                valid_until=known.valid_until,
                supersedes=supersedes,
            )
        )
        assert answer.stored
        self.known[id] = known

    @rule(target=memories, old=memories)
    def supersede(self, old: str) -> MultipleResults[str]:
        if old not in self.known or self.known[old].superseded:
            return multiple()
        number = next(self.numbers)
        known = Known(f"zqx{number}jv", self.clock.now(), "hall", None)
        self.keep(f"m{number}", known, supersedes=old)
        self.known[old] = replace(self.known[old], superseded=f"m{number}")
        return multiple(f"m{number}")

    def lose(self, id: str) -> None:
        """Forget it; what it superseded is superseded by its own successor, if any."""
        gone = self.gone[id] = self.known.pop(id)
        for other, known in self.known.items():
            if known.superseded == id:
                self.known[other] = replace(known, superseded=gone.superseded)

    @rule(target=cycles, force=st.booleans())
    def sleep(self, force: bool) -> MultipleResults[str]:  # noqa: FBT001
        now = self.clock.now()
        report = self.call(Sleep(force=force))
        assert report.failed == 0
        for id, known in self.known.items():
            if (
                known.tier is Tier.WORKING
                and known.created_at > now
                and not known.future_since
            ):
                self.known[id] = known = replace(known, future_since=now)  # noqa: PLW2901
            if (
                known.tier is Tier.WORKING
                and not known.pinned
                and (force or known.old(now))
            ):
                self.known[id] = replace(
                    known,
                    tier=Tier.ARCHIVE,
                    cycle=report.cycle,
                    held_until=None,
                    future_since=None,
                )
        return multiple(report.cycle) if report.evicted else multiple()

    @rule(cycle=cycles)
    def undo(self, cycle: str) -> None:
        members = {
            id: known for id, known in self.known.items() if known.cycle == cycle
        }
        if cycle in self.undone:
            with pytest.raises(CannotUndo):
                self.call(Undo(cycle))
            return
        pruned = {self.episode(id).id for id, known in members.items() if known.pruned}
        back = [id for id in members if self.episode(id).id not in pruned]

        report = self.call(Undo(cycle)).cycle
        assert report

        assert report.restored == len(back)
        assert (
            report.status is CycleStatus.UNDONE
        ) or report.restored < report.candidates
        for id in back:
            self.known[id] = replace(
                self.known[id],
                tier=Tier.WORKING,
                cycle="",
                held_until=report.held_until,
            )
        if not pruned:
            self.undone.add(cycle)

    def is_frozen(self, id: str) -> bool:
        """Whether the summary of a memory is all that is left of some words."""
        if self.known[id].tier is Tier.WORKING:
            return False
        originals = self.call(Expand(self.episode(id).id)).originals
        return any(self.known[one.id].pruned for one in originals)

    @rule(id=memories)
    def reword(self, id: str) -> None:
        known = self.known.get(id)
        if known is None:
            return
        edited = replace(
            known,
            word=f"zqx{next(self.numbers)}jv",
            earlier=(*known.earlier, known.word),
        )
        if self.is_frozen(id):
            with pytest.raises(WordsPruned):
                self.call(EditMemory(id, text=edited.content))
            return
        assert self.call(EditMemory(id, text=edited.content)).changed == 1
        self.known[id] = edited

    @rule(id=memories, session=st.sampled_from(SESSIONS))
    def move(self, id: str, session: str) -> None:
        known = self.known.get(id)
        if known is None or known.session == session:
            return
        alone = (
            known.tier is Tier.ARCHIVE
            and len(self.call(Expand(self.episode(id).id)).originals) == 1
        )
        if self.is_frozen(id) and not alone:
            with pytest.raises(WordsPruned):
                self.call(EditMemory(id, session=session))
            return
        edited = self.call(EditMemory(id, session=session))
        known = replace(known, session=session)
        if edited.restored:
            known = replace(known, tier=Tier.WORKING, cycle="")
        assert bool(edited.restored) == (
            self.known[id].tier is Tier.ARCHIVE and not alone
        )
        self.known[id] = known

    @rule(id=memories, tag=st.sampled_from(["red", "blue"]), off=st.booleans())
    def tag(self, id: str, tag: str, off: bool) -> None:  # noqa: FBT001
        known = self.known.get(id)
        if known is None:
            return
        self.call(Untag(id, tags=[tag]) if off else Tag(id, tags=[tag]))
        tags = {*known.tags, tag} - ({tag} if off else set())
        self.known[id] = replace(known, tags=tuple(sorted(tags)))

    @rule(ids=st.lists(memories, min_size=1, max_size=3, unique=True))
    def forget(self, ids: list[str]) -> None:
        for id in ids:
            if id in self.known:
                assert self.call(Forget(id)).memories == 1
                self.lose(id)

    @rule(session=st.sampled_from(SESSIONS), source=st.sampled_from(["cook"]))
    def forget_a_source(self, session: str, source: str) -> None:
        meant = [
            id
            for id, known in self.known.items()
            if (known.session, known.source) == (session, source)
        ]
        preview = self.call(Forget(session=session, source=source, dry_run=True))
        receipt = self.call(Forget(session=session, source=source))
        assert preview.memories == receipt.memories == len(meant)
        for id in meant:
            self.lose(id)

    @rule(id=memories, off=st.booleans())
    def pin(self, id: str, off: bool) -> None:  # noqa: FBT001
        known = self.known.get(id)
        if known is None:
            return
        if known.tier is Tier.ARCHIVE:
            with pytest.raises(InvalidRequest):
                self.call(Unpin(id) if off else Pin(id))
            return
        self.call(Unpin(id) if off else Pin(id))
        held_until = None if off else known.held_until
        self.known[id] = replace(known, pinned=not off, held_until=held_until)

    @precondition(
        lambda self: any(one.tier is Tier.ARCHIVE for one in self.known.values())
    )
    @rule(at=st.integers(0, 99))
    def restore(self, at: int) -> None:
        archived = [id for id, one in self.known.items() if one.tier is Tier.ARCHIVE]
        id = archived[at % len(archived)]
        known = self.known[id]
        if known.pruned:
            with pytest.raises(WordsPruned):
                self.call(Restore(id))
            return
        self.call(Restore(id))
        self.known[id] = replace(known, tier=Tier.WORKING, pinned=True, cycle="")

    @rule(days=st.integers(1, 3))
    def prune(self, days: int) -> None:
        self.call(Prune(keep_days=days))
        cutoff = self.clock.now() - timedelta(days=days)
        for id, known in self.known.items():
            if known.tier is Tier.ARCHIVE and known.created_at < cutoff:
                self.known[id] = replace(known, pruned=True)

    @rule(hours=st.sampled_from([-30, -1, 1, 13, 40, 24 * 9, 24 * 40]))
    def move_the_clock(self, hours: int) -> None:
        self.clock.advance(hours=hours)

    @rule()
    def restart(self) -> None:
        self.stack.close()
        self.memory = self.opened()

    def episode(self, id: str) -> Episode:
        memory = self.call(Get(id)).memory
        assert memory
        found = self.call(Get(memory.episode or "")).episode
        assert isinstance(found, Episode)
        return found

    @invariant()
    def every_memory_is_where_it_should_be_and_as_it_was(self) -> None:
        for id, known in self.known.items():
            memory = self.call(Get(id)).memory
            assert isinstance(memory, MemoryRecord)
            assert (memory.tier, memory.pinned) == (known.tier, known.pinned)
            assert memory.content == ("" if known.pruned else known.content)
            assert memory.created_at == known.created_at
            assert (memory.session, memory.source) == (known.session, known.source)
            assert memory.tags == known.tags
            assert (memory.superseded_at is not None) == bool(known.superseded)

    @invariant()
    def everything_is_there_once(self) -> None:
        with closing(sqlite3.connect(self.database)) as connection:
            ids = [
                id
                for table in ("working_memory", "archive")
                for (id,) in connection.execute(f"SELECT id FROM {table}")
            ]
            emptied = connection.execute("SELECT * FROM emptied_episode").fetchall()
        assert sorted(ids) == sorted(self.known)
        assert emptied == []

    @invariant()
    def nothing_forgotten_can_be_read(self) -> None:
        data = b"".join(path.read_bytes() for path in self.room.iterdir())
        for known in self.gone.values():
            words = (known.word, *known.earlier)
            assert [word for word in words if word.encode() in data] == []

    @invariant()
    def recall_finds_what_is_in_force_and_nothing_else(self) -> None:
        for id, known in list(self.known.items())[-4:]:
            hits = self.call(Recall(known.word)).hits
            shown = {line.id for hit in hits for line in hit.lines} | {
                hit.id for hit in hits
            }
            until = known.valid_until
            expired = until is not None and until <= self.clock.now()
            past = known.superseded or known.pruned or expired
            assert (id in shown) == (not past), known
            for word in known.earlier[-1:]:
                assert self.call(Recall(word)).hits == [], known

    @invariant()
    def every_summary_tells_of_what_it_was_made_of(self) -> None:
        with closing(sqlite3.connect(self.database)) as connection:
            rows = connection.execute(
                "SELECT id, item_count, content FROM episodic_memory"
            )
            summaries = rows.fetchall()
        for id, count, content in summaries:
            originals = {one.id for one in self.call(Expand(id)).originals}
            assert originals <= self.known.keys()
            assert len(originals) == count
            words = [known.word for known in self.known.values()]
            below = [self.known[one] for one in originals]
            # With a pruned original, a summary is all that is left, and is not written anew.
            frozen = any(known.pruned for known in below)
            allowed = {one.word for one in below if frozen or not one.superseded}
            assert {word for word in words if word in content} <= allowed


@pytest.mark.parametrize(
    ("examples", "steps"),
    [
        pytest.param(
            15, 16, id="short", marks=[pytest.mark.thorough, pytest.mark.sqlite]
        ),
        pytest.param(LONG_LIVES, 40, id="long", marks=pytest.mark.lifetime),
    ],
)
def test_a_life_loses_nothing_doubles_nothing_and_revives_nothing(
    blank: Path, examples: int, steps: int
) -> None:
    Lifetime.blank = blank
    run_state_machine_as_test(
        Lifetime,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
