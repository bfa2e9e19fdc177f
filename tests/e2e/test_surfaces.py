"""Every verb over HTTP, `Client`, the shell and `Memory`: the same call, the same answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from e2e.daemons import Daemon, Json, running
from e2e.surfaces import InPython, InTheShell, OverHttp, Surface

from mnemosyned import Memory
from mnemosyned.verbs.facade import ALIASES, VERBS

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]

LONG_AGO = "2026-03-02T09:30:00Z"
VARIES = {
    "bytes",
    "bytes_on_disk",
    "database",
    "duration_s",
    "file",
    "folder",
    "longest_write_ms",
    "mark",
    "pid",
    "purge_due",
    "uptime_s",
}
SAID = {"session": "kitchen", "source": "cook", "role": "user"}
WHOLE = {**SAID, "metadata": {"dish": "stew"}}
MADE_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
IMPORT_IS = "remember_many"
"""The shell's form of it counts what it stored where the others name it."""


class Walker:
    """Calls verbs over one surface and keeps what came back, with its accidents taken out."""

    def __init__(self, surface: Surface) -> None:
        self.answers: list[tuple[str, Json]] = []
        self.called: dict[str, set[str]] = {}
        self._surface = surface
        self._ids: dict[str, str] = {}

    def __call__(self, name: str, **fields: Json) -> Json:
        result = self._surface.call(name, **fields)
        self.called.setdefault(name, set()).update(fields)
        if name == IMPORT_IS and "memories" in result:
            stored = sum(memory["stored"] for memory in result["memories"])
            seen: Json = {
                "stored": stored,
                "known": len(result["memories"]) - stored,
                "learned": result["learned"],
                "bad": 0,
                "excluded": 0,
                "problems": [],
                "files": 1,
                "edited": 0,
                "forgotten": 0,
                "unknown_files": 0,
                "restored": {},
                "left_out": 0,
                "continued": False,
            }
        elif (
            result.get("purge_in_s") is not None
        ):  # on a busy machine a purge waits its turn
            seen = {**result, "complete": True, "purge_in_s": None}
        else:
            seen = result
        self.answers.append((name, self._plain(seen)))
        return result

    def _plain(self, value: Json, key: str = "") -> Json:
        if isinstance(value, dict):
            return {
                self._number_ids(name): self._plain(member, name)
                for name, member in value.items()
            }
        if isinstance(value, list):
            return [self._plain(member) for member in value]
        if key in VARIES:
            return type(value).__name__
        if isinstance(value, str):
            if MOMENT.fullmatch(value) and self._recent(value):
                return "now"
            # A cursor begins with a moment in microseconds.
            text = re.sub(r"^\d{16}~", "~", value) if key == "next" else value
            for days in (0, 1):  # another walk may have begun before midnight
                day = datetime.now().astimezone() - timedelta(days=days)
                text = text.replace(f"{day:%Y-%m-%d}", "today")
            return self._number_ids(text)
        return value

    def _number_ids(self, text: str) -> str:
        """The text with each made id as its number."""
        return MADE_ID.sub(
            lambda made: self._ids.setdefault(made[0], f"id-{len(self._ids)}"), text
        )

    @staticmethod
    def _recent(moment: str) -> bool:
        return datetime.now(UTC) - datetime.fromisoformat(moment) < timedelta(hours=1)


def converse(call: Walker) -> None:
    """The verbs of an agent's conversation."""
    lesson = call(
        "learn",
        content="Taste before you salt.",
        kind="lesson",
        session="kitchen",
        source="cook",
    )
    call("learn", content="Serve at six.", source="waiter")
    call("remember", content="Please never use onions. And call me Ada.", **WHOLE)
    call("remember", content="Call me Adele.", **WHOLE)
    call("learnings", source="cook", kind="instruction", superseded=False, limit=5)
    call("learnings", source=["cook", "waiter"], superseded=True)
    made = lesson["learning"]["id"]
    call("learnings", query="taste", id=[made])
    first = call("learnings", superseded=True, limit=1)
    call("learnings", superseded=True, after=first["next"])
    call("edit_learning", id=made, text="Taste twice before you salt.")
    call("remove_learning", id=made)
    said = [
        {
            "role": "user" if n % 2 else "assistant",
            "content": f"Step {n}: decided: {n} carrots.",
        }
        for n in range(12)
    ]
    call(
        "context",
        message="what of the carrot?",
        messages=said,
        system="You cook.",
        tools=[{"name": "oven"}],
        session=["kitchen", "hall"],
        source="cook",
        memory_place="message",
        total=2000,
        system_reserve=200,
        tools_reserve=100,
        memory_fraction=0.25,
        learnings_fraction=0.125,
        fresh_tail=2,
    )
    shorter = call(
        "compact",
        messages=said,
        policy="facts",
        max_tokens=100,
        threshold=0.5,
        keep_recent=2,
        reported_tokens=300,
        force=True,
        session="kitchen",
        source="cook",
    )
    call("expand", id=shorter["expand"][0])


def review(call: Walker) -> None:
    """The verbs of what agents are told, and of what ended."""
    given = call("injections", limit=1)["injections"]
    call(
        "injections",
        session="kitchen",
        project="no-project",
        since=LONG_AGO,
        until="2100-01-01T00:00:00Z",
        outcome="unknown",
        after=given[0]["id"],
    )
    call("rate_injection", id=given[0]["id"], outcome="useful")
    call("edit_briefing", id="first", pin=True, drop=False)
    call("edit_briefing", id="first", text="Stir slowly.")
    call("briefing", project="no-project", prompt="When is the tea ready?")
    call("remember", id="port", content="The oven listens on port 8080.", **SAID)
    call("remember", content="The oven now listens on port 9090.", **SAID)
    (ended,) = call("endings", limit=5, reveal=False)["endings"]
    assert ended["id"] == "port"
    call("remember", content="The oven now listens on port 7070.", **SAID)
    page = call("endings", id="port", undone=False, at_once=False, limit=1)
    call("endings", after=page["next"])
    call("undo_ending", id="port", redo=False)
    call("undo_ending", id="port", redo=True)


def look(call: Walker) -> None:
    page = call("list", limit=2, order="oldest", tier="archive", history=True)
    call("list", after=page["next"], session=["kitchen", "hall"], source="cook")
    call("list", role="user", pinned=True, reveal=True, since=LONG_AGO)
    call("list", id_prefix="STEP", until="2100-01-01T00:00:00Z")
    call("list", level="episode")
    call("sessions", limit=1, prefix="k")
    call("sources", limit=5, prefix="co")
    call("list", query="tea", project="none")
    call("projects", limit=5)
    call("days", since=LONG_AGO, until="2026-04-01T00:00:00Z")
    call("days", since="2026-03-01", until="2026-03-02", by="hour", zone="Asia/Tokyo")
    call("watch", paths=[], remove=False)


def change(call: Walker) -> None:
    """The verbs that change memories, by ids and by filters."""
    call("log")
    salt = "Salt the soup at 9:40."
    call("remember", id="soup", content=salt, tags=["Spice"], **SAID)
    when = {"since": LONG_AGO, "until": "2100-01-01T00:00:00Z"}
    where = {"query": "salt", "tag": "spice", "person": "user", **when}
    which = {"session": ["kitchen", "hall"], "source": "cook", **where}
    tags = {"tags": ["Hot", "red"]}
    for name, fields in (("tag", tags), ("untag", tags), ("pin", {}), ("unpin", {})):
        preview = call(name, **fields, **which, dry_run=True)
        seen = {"mark": preview["mark"]}
        last = preview["lines"][-1]["id"]
        call(name, **fields, **which, **seen, dry_run=True, after=last)
        call(name, **fields, **which, **seen)
        call(name, **fields, id="soup")
        call(name, **fields, project="shop", dry_run=True)
    moved = {"session": "hall", "source": "chef", "tags": ["spice", "soup"]}
    of = {"of_session": "kitchen", "of_source": ["cook", "chef"], **where}
    preview = call("edit", **moved, **of, dry_run=True)
    seen = {"mark": preview["mark"]}
    last = preview["lines"][-1]["id"]
    call("edit", **moved, **of, **seen, dry_run=True, after=last)
    call("edit", **moved, **of, **seen)
    call("edit", **moved, project="shop", dry_run=True)
    words = "Salt the soup at 9:50."
    call("edit", id="soup", text=words, if_text=salt)
    told = {"role": "cook", "created_at": LONG_AGO, "importance": 0.25}
    call("edit", id="soup", **told, drop_history=False)
    call("get", id="soup", history=True)
    call("list", tag=["soup", "stew"])
    call("recall", query="soup", tag="soup")
    call("edit", id="soup", drop_history=True)
    preview = call("forget", tag="soup", dry_run=True)
    call("forget", tag="soup", mark=preview["mark"], now=True)


def walk(call: Walker, room: Path) -> None:
    call(
        "remember",
        id="first",
        content="Stir the stew — slowly, 40 minutes at 95 °C.",
        created_at=LONG_AGO,
        importance=0.75,
        pinned=False,
        dedupe=False,
        **WHOLE,
    )
    call("remember", content="Salt comes last.", pinned=True, **WHOLE)
    call("remember", content="Salt comes last.", dedupe=True, **WHOLE)
    call("remember", id="first", content="Stir the stew — slowly, 40 minutes at 95 °C.")
    batch = [
        {"id": f"step-{n}", "content": step, "created_at": LONG_AGO, **WHOLE}
        for n, step in enumerate(
            ["Peel a carrot.", "Cut the carrot.", "Boil it.", "Taste."]
        )
    ]
    call(
        "remember_many",
        memories=batch,
        dry_run=False,
        import_id="01M00000000000000000000ACT",
    )
    call("remember", content="The cellar's password is thyme77.", pinned=True, **WHOLE)
    call("recall", query="what of the carrot?", limit=3, tier="working")
    call("recall", query="cellar", reveal=False, role="user")
    call("recall", query="cellar", reveal=True)
    narrow = {"session": ["kitchen", "hall"], "source": "cook"}
    call(
        "recall",
        query="stew",
        since="2026-03-01T00:00:00+01:00",
        until=LONG_AGO,
        **narrow,
    )
    call(
        "recall",
        query="stew of yesterday",
        asked_at="2026-03-02T00:00:00+01:00",
        explain=True,
    )
    call("sleep", dry_run=True, force=False)
    call("sleep", session="kitchen", force=True, dry_run=False)
    for held in ({"pause_minutes": 0}, {"stop": True}):
        call("sleep", **held)
    call(
        "remember",
        id="late",
        content="The stew was good.",
        session="hall",
        created_at=LONG_AGO,
    )
    for held in ({"pause_minutes": 0}, {"stop": True}):
        call("consolidate", **held)
    call("consolidate", session="hall", force=False, dry_run=False)
    episode = call("recall", query="stew", limit=5)["hits"][0]["id"]
    call("recall", query="nothing of this kind")
    call("get", id="first")
    call("get", id=episode, reveal=True)
    call("expand", id=episode, reveal=False, depth=0)
    look(call)
    cycle = call("log", limit=5, session="kitchen")["rows"][0]["cycle"]
    call("log", cycle=cycle, after=0)
    call("restore", id="step-1")
    call("unpin", id="step-1")
    call("pin", id="step-1")
    call("remember", content="Rome.", id="old", session="hall")
    new = {
        "supersedes": "old",
        "valid_until": "2100-01-01T00:00:00Z",
        "session": "hall",
    }
    call("remember", content="Rome, no, Paris.", id="new", **new)
    call("recall", query="Rome", history=True)
    call("get", id="old")
    call(
        "prune", keep_days=1, characters_max=1_000_000, dry_run=True, believe_clock=True
    )
    call("undo", list=True)
    call("undo", action=cycle, dry_run=True, keep_hours=0.5)
    call("undo", action=cycle, keep_hours=1)
    call("forget", id="late")
    which = {
        "session": "kitchen",
        "source": ["cook", "chef"],
        "query": "salt",
        "person": "user",
    }
    when = {"since": LONG_AGO, "until": "2100-01-01T00:00:00Z"}
    lines = call("forget", **which, **when, dry_run=True)["lines"]
    call("forget", **which, **when, dry_run=True, after=lines[-1]["id"])
    call("forget", **which, **when)
    call("forget", project="shop", dry_run=True)
    change(call)
    converse(call)
    review(call)
    call("backup", file=str(room / "backup.db"))
    call("status")


def test_every_verb_answers_alike_over_every_surface(tmp_path: Path) -> None:
    walkers = {}

    for name in ("http", "client", "shell", "embedded"):
        with surface(name, tmp_path / name) as called:
            walkers[name] = Walker(called)
            walk(walkers[name], tmp_path)

    expected = walkers["http"].answers
    for name, walker in walkers.items():
        assert walker.called == every_field(), (
            f"{name} was not walked over every verb and field"
        )
        for (verb, answer), (_, http_answer) in zip(
            walker.answers, expected, strict=True
        ):
            assert answer == http_answer, f"{verb} over {name}"


def every_field() -> dict[str, set[str]]:
    return {
        name: {
            field.name
            for field in msgspec.structs.fields(VERBS[ALIASES.get(name, name)])
        }
        for name in (*VERBS, *ALIASES)
    }


@contextmanager
def surface(name: str, home: Path) -> Iterator[Surface]:
    """One way to call verbs, on a database of its own."""
    home.mkdir()
    with ExitStack() as stack:
        if name == "embedded":
            yield InPython(stack.enter_context(Memory(home / "memory.db")))
            return
        daemon = stack.enter_context(running(home))
        if name == "client":
            yield InPython(stack.enter_context(daemon.client()))
        else:
            yield OverHttp(daemon) if name == "http" else InTheShell(daemon, home)


@pytest.mark.parametrize(
    ("verb", "query", "fields"),
    [
        (
            "recall",
            "query=tea+at&limit=1&session=home&session=work",
            {"query": "tea at", "limit": 1, "session": ["home", "work"]},
        ),
        ("get", "id=tea", {"id": "tea"}),
        ("log", "limit=1", {"limit": 1}),
    ],
)
def test_what_reads_can_be_asked_with_get(
    daemon: Daemon, verb: str, query: str, fields: dict[str, object]
) -> None:
    tea = "Tea at four, not at five."
    daemon.post("remember", id="tea", content=tea, session="home")
    by_post = daemon.post(verb, **fields)

    by_get = daemon.request("GET", f"/v1/{verb}?{query}")

    assert by_get.status == 200
    assert by_get == by_post
