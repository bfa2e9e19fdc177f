"""The soak's clients: each does a bit of everything and checks what it can see of its own."""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.corpus import Corpus, fresh
from soak.ledger import Entry, Ledger, digest, new_marker
from soak.wire import Reply, Wire

SESSION_MEMORIES = 60
TEXTS = 20_000
PRUNED_YEARS = 12
KEEP_DAYS = 3_650
MESSAGES = 24
FINDINGS_MAX = 20

EXPECTED = {
    ("sleep", "sleep_in_progress"): "one cycle runs at a time",
    ("undo", "sleep_in_progress"): "one cycle runs at a time",
    ("undo", "cannot_undo"): "another client took the last cycle back, or it moved nothing",
    ("undo", "not_found"): "the last cycle's rows went with what was forgotten",
    ("restore", "invalid_request"): "it is in working memory already",
    ("restore", "words_pruned"): "retention took its words",
    ("pin", "invalid_request"): "a cycle moved it to the archive",
    ("unpin", "invalid_request"): "a cycle moved it to the archive",
    ("expand", "not_found"): "the episode was forgotten, taken back or emptied meanwhile",
    ("gone", "not_found"): "it was forgotten",
    ("taken", "id_taken"): "the id has other words",
}  # fmt: skip
"""Errors that a client of a busy store must reckon with, and why; no other may occur."""

WEIGHTS = {
    "remember": 26, "remember_many": 2, "recall": 32, "context": 8, "get": 10, "gone": 1,
    "expand": 4, "status": 2, "log": 1, "compact": 2, "learn": 1, "learnings": 1, "pin": 1,
    "restore": 1, "prune": 0.2, "sleep": 0.6, "undo": 0.1, "taken": 0.5, "repeat": 1,
}  # fmt: skip
"""How often each is done; forgetting has a pace of its own, as each rewrites the whole file."""


class Pace:
    """Lets so many forgets a minute through, whoever asks."""

    def __init__(self, per_minute: float) -> None:
        self._every_s = 60 / per_minute if per_minute else None
        self._next = time.monotonic() + (self._every_s or 0) / 4
        self._lock = threading.Lock()

    def due(self) -> bool:
        """Whether one may go now; answers yes to one of those who ask at once."""
        with self._lock:
            now = time.monotonic()
            if self._every_s is None or now < self._next:
                return False
            self._next = now + self._every_s
            return True


class Client:
    """One agent at work: its sessions are its own, so that it knows what they must hold."""

    def __init__(
        self, number: int, socket: Path, *, seed: int, pace: Pace, pause_s: float
    ) -> None:
        self.ledger = Ledger()
        self.counts: Counter[str] = Counter()
        self.expected: Counter[str] = Counter()
        self.findings: list[str] = []
        self.slowest: dict[str, float] = {}
        self._name = f"c{number:02d}"
        self._source = f"agent-{number % 5}"
        self._chance = random.Random(f"{seed} {number}")
        self._wire = Wire(socket)
        self._texts: Corpus = fresh(TEXTS)
        self._pace = pace
        self._pause_s = pause_s
        self._made = 0
        self._sessions = [f"{self._name}-0"]
        self._episodes: list[str] = []
        self._handlers: dict[str, Callable[[], None]] = {
            verb: getattr(self, f"_{verb}") for verb in WEIGHTS
        }

    def run(self, ends: float) -> None:
        """Work until that moment of the monotonic clock, or until too much is wrong."""
        verbs, weights = list(WEIGHTS), list(WEIGHTS.values())
        while time.monotonic() < ends and len(self.findings) < FINDINGS_MAX:
            (verb,) = self._chance.choices(verbs, weights)
            try:
                if self._pace.due():
                    self._forget()
                else:
                    self._handlers[verb]()
            except Exception as error:  # noqa: BLE001 an answer of a form nobody expects is a finding
                self._wrong(verb, repr(error))
            time.sleep(self._chance.random() * 2 * self._pause_s)
        self._wire.close()

    # ------------------------------------------------------------ one request

    def _call(self, verb: str, doing: str | None = None, **fields: object) -> Reply:
        """Call a verb; what `EXPECTED` does not list is a finding."""
        doing = doing or verb
        reply = self._wire.post(verb, **fields)
        self.counts[doing] += 1
        self.slowest[doing] = max(self.slowest.get(doing, 0.0), reply.seconds)
        if reply.status == 200:
            return reply
        if reply.status < 500 and (doing, reply.code) in EXPECTED:
            self.expected[f"{doing} {reply.code}"] += 1
        else:
            self._wrong(doing, f"{reply.status} {reply.code}: {reply.message}")
        return reply

    def _wrong(self, doing: str, what: str) -> None:
        self.findings.append(f"{self._name} {doing}: {what[:300]}")

    def _own(self) -> Entry | None:
        """One of the own memories, the newer the likelier."""
        entries = self.ledger.entries
        if not entries:
            return None
        reach = self._chance.choice((20, 200, len(entries)))
        skip = max(0, len(entries) - self._chance.randint(1, min(reach, len(entries))))
        return entries[list(entries)[skip]]

    # ------------------------------------------------------------- remembering

    def _draft(self, *, old: bool = False) -> tuple[dict[str, Any], Entry]:
        self._made += 1
        if self._made % SESSION_MEMORIES == 0:
            self._sessions.append(f"{self._name}-{self._made // SESSION_MEMORIES}")
        marker = new_marker(self._chance)
        words = self._texts.content(self._chance.randrange(TEXTS))
        content = f"{words} ({marker})"
        session = f"{self._name}-old" if old else self._sessions[-1]
        now = datetime.now(UTC)
        ago = timedelta(days=365 * PRUNED_YEARS if old else self._chance.random() * 20)
        when = now - ago if old or self._chance.random() < 0.5 else now
        request = {
            "content": content,
            "id": f"{self._name}-m{self._made}",
            "session": session,
            "source": self._source,
            "role": self._chance.choice(("user", "assistant", "tool")),
            "created_at": when.isoformat(),
        }
        return request, Entry(
            id=str(request["id"]),
            marker=marker,
            digest=digest(content),
            session=session,
            prunable=old,
        )

    def _remember(self) -> None:
        request, entry = self._draft(old=self._chance.random() < 0.01)
        if self._call("remember", **request).status == 200:
            self.ledger.keep([entry])

    def _repeat(self) -> None:
        """The same call twice, as after an answer that was lost."""
        request, entry = self._draft()
        for _ in range(2):
            if self._call("remember", "repeat", **request).status == 200:
                self.ledger.keep([entry])

    def _taken(self) -> None:
        if entry := self._own():
            reply = self._call("remember", "taken", id=entry.id, content="other words")
            if reply.status == 200:
                self._wrong("taken", f"{entry.id} was kept with other words")

    def _remember_many(self) -> None:
        drafts = [self._draft() for _ in range(self._chance.randint(5, 40))]
        reply = self._call("remember_many", memories=[request for request, _ in drafts])
        if reply.status == 200:
            self.ledger.keep([entry for _, entry in drafts])

    # ----------------------------------------------------------------- reading

    def _recall(self) -> None:
        entry = self._own()
        if entry is None or self._chance.random() < 0.5:
            words = self._texts.content(self._chance.randrange(TEXTS)).split()
            query = " ".join(self._chance.sample(words, min(len(words), 6)))
            reply = self._call("recall", query=query)
        else:
            reply = self._call("recall", query=entry.marker)
            hidden = reply.status == 200 and entry.marker not in _text(reply)
            if hidden and not entry.prunable:
                self._wrong("recall", f"{entry.id} is not found by {entry.marker}")
        hits = reply.body["hits"] if reply.status == 200 else []
        self._episodes += [hit["id"] for hit in hits if hit["tier"] == "episodic"]
        del self._episodes[:-20]

    def _context(self) -> None:
        entry = self._own()
        messages = self._talk(self._chance.randint(0, 12))
        self._call(
            "context",
            message=entry.marker if entry else "What next?",
            messages=messages,
            system="You are a careful agent.",
        )

    def _get(self) -> None:
        if entry := self._own():
            reply = self._call("get", id=entry.id, reveal=True)
            if reply.status != 200:
                self._wrong("get", f"{entry.id} was acknowledged and is not there")
                return
            words = reply.body["memory"]["content"]
            if not entry.prunable and digest(words) != entry.digest:
                self._wrong("get", f"{entry.id} has other words")

    def _gone(self) -> None:
        if self.ledger.forgotten:
            entry = self._chance.choice(self.ledger.forgotten)
            if self._call("get", "gone", id=entry.id).status == 200:
                self._wrong("gone", f"{entry.id} was forgotten and is there")
            if _has(self._call("recall", query=entry.marker), entry.marker):
                self._wrong("gone", f"{entry.id} was forgotten and is found")

    def _expand(self) -> None:
        if self._episodes:
            id = self._chance.choice(self._episodes)
            self._call("expand", id=id, depth=self._chance.randint(0, 1))

    def _status(self) -> None:
        self._call("status")

    def _log(self) -> None:
        self._call("log", limit=50)

    # ------------------------------------------------------------- the window

    def _talk(self, count: int) -> list[dict[str, Any]]:
        texts = [
            self._texts.content(self._chance.randrange(TEXTS)) for _ in range(count)
        ]
        roles = ("user", "assistant")
        return [
            {"role": roles[at % 2], "content": text} for at, text in enumerate(texts)
        ]

    def _compact(self) -> None:
        session = f"{self._sessions[-1]}-talk"
        reply = self._call(
            "compact",
            messages=self._talk(MESSAGES),
            session=session,
            source=self._source,
            policy=self._chance.choice(("auto", "facts", "rounds")),
            max_tokens=500,
            force=True,
        )
        if reply.status == 200 and reply.body["archived"]:
            kept = self.ledger.compacted.setdefault(session, set())
            kept.update(reply.body["archived"])
            for id in reply.body["expand"]:
                self._call("expand", "expand compaction", id=id)

    def _learn(self) -> None:
        lesson = f"{self._name} learned {new_marker(self._chance)} in the {self._made}th step"
        self._call("learn", content=lesson, source=self._source)

    def _learnings(self) -> None:
        reply = self._call("learnings", limit=100, source=self._source)
        shown = reply.body["learnings"] if reply.status == 200 else []
        own = [item for item in shown if item["text"].startswith(f"{self._name} ")]
        for item in own[5:]:
            self._call("remove_learning", id=item["id"])

    # -------------------------------------------------------- moving and taking

    def _pin(self) -> None:
        if entry := self._own():
            self._call("unpin" if self._chance.random() < 0.7 else "pin", id=entry.id)

    def _restore(self) -> None:
        if entry := self._own():
            self._call("restore", id=entry.id)

    def _prune(self) -> None:
        self._call("prune", keep_days=KEEP_DAYS)

    def _sleep(self) -> None:
        if self._chance.random() < 0.5:
            self._call("sleep", force=True, session=self._chance.choice(self._sessions))
        else:
            self._call("sleep", force=self._chance.random() < 0.3)

    def _undo(self) -> None:
        """Undo the newest sleep cycle: another action may be another client's edit."""
        listed = self._call("undo", list=True).body["actions"]
        for cycle in [each["id"] for each in listed if each["kind"] == "sleep"][:1]:
            self._call("undo", action=cycle)

    def _forget(self) -> None:
        entry = self._own()
        if entry is None:
            return
        ways: Sequence[tuple[dict[str, object], str]] = (
            ({"id": entry.id}, "id"),
            ({"query": entry.marker}, "query"),
            ({"session": entry.session}, "session"),
        )
        # Retention may have taken the words that a query would find a prunable one by.
        fields, way = ways[0] if entry.prunable else self._chance.choice(ways)
        talk = f"{entry.session}-talk"
        if way == "session" and talk in self.ledger.compacted:
            fields = {"session": [entry.session, talk]}
        reply = self._call("forget", f"forget by {way}", **fields)
        if reply.status != 200:
            return
        if way == "session":
            wanted = sum(map(self.ledger.forget_session, (entry.session, talk)))
        else:
            self.ledger.forget(entry.id)
            wanted = 1
        went = reply.body["memories"]
        if went != wanted:
            self._wrong("forget", f"by {way} {went} went and not {wanted}")


def _text(reply: Reply) -> str:
    """The words that were found; those that were asked for are in `matching` in any case."""
    return json.dumps({**reply.body, "matching": None})


def _has(reply: Reply, marker: str) -> bool:
    return reply.status == 200 and marker in _text(reply)
