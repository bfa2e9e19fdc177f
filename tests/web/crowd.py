"""A crowded memory in many scripts, with the address of each page on it."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise, product
from urllib.parse import quote

from support.fakes import agent_session

from mnemosyned import Memory
from mnemosyned.memory.endings import EndingRecord

SUBJECTS = (
    "checkout,billing job,search index,login page,CI pipeline,release notes".split(",")
)
ACTS = (
    "failed with error {n} on host web-{k}; we restarted it",
    "was moved to port {n}",
    "now takes {k} minutes instead of {n}",
    "needs a review by {who} before 2026-12-{k:02d}",
    "should never be deployed on Fridays, said {who}",
)
PROJECT = "git:example.org/shop"
PEOPLE = ("Ada", "Bob", "Jörg", "Keiko", "Noor")
SCRIPTS = {
    "german": "Die Donaudampfschifffahrtsgesellschaftskapitänsmützenfabrik liefert ab März nur "
    "noch dienstags; Frau Müller-Lüdenscheidt bestätigte das am Telefon.",
    "japanese": "サーバーの移行は来週の火曜日に行います。田中さんがバックアップを確認してから、"
    "nginxの設定を変更してください。",
    "arabic": "نحن ننشر يوم الثلاثاء، ولا ننشر أبدًا يوم الجمعة. رقم المنفذ هو 8443.",
    "hebrew": "המשתמשת ביקשה שהסיכום יישלח בעברית, עם הקובץ report_final.pdf",
    "endless": "A" * 900 + " " + "longword" * 200,
    "lines": "\n".join(
        f"10:{n:02d}:00 INFO worker-{n} finished job {n * 37}" for n in range(60)
    ),
}


def add_learnings(memory: Memory) -> None:
    """Learn in many scripts and sources, more than one page has; pin, drop and reword some."""
    for subject, who in product(SUBJECTS, PEOPLE):
        for name in ("codex", "claude-code", None):
            memory.learn(f"Ask {who} before you touch the {subject}.", source=name)
    ids = [memory.learn(text[:2_000]).learning.id for text in SCRIPTS.values()]
    memory.edit_briefing(ids[0], pin=True)
    memory.edit_briefing(ids[1], drop=True)
    memory.edit_briefing(ids[2], text=SCRIPTS["hebrew"])


def add_endings(memory: Memory, *ids: str) -> None:
    """Have the first sentence of each memory end that of the one before."""
    store = memory._caller.store  # type: ignore[attr-defined]  # noqa: SLF001 as the background does
    store.endings.add(
        [
            EndingRecord(
                older=older,
                newer=newer,
                reason="value",
                older_place=0,
                newer_place=0,
                found_at=datetime.now(UTC),
            )
            for older, newer in pairwise(ids)
        ]
    )


def fill(memory: Memory) -> dict[str, str]:
    """Fill a memory with ten weeks of talk; return the address of each page by a name of it."""
    chance = random.Random(5)
    now = datetime.now(UTC)
    batch: list[dict[str, object]] = []
    for day in range(70, -1, -1):
        for part in range(chance.choice([0, 1, 1, 2])):
            moment = now - timedelta(days=day, hours=10 - part)
            for _ in range(chance.randint(3, 9)):
                moment += timedelta(minutes=4)
                act = chance.choice(ACTS).format(
                    n=chance.randint(100, 9_000),
                    k=chance.randint(2, 28),
                    who=chance.choice(PEOPLE),
                )
                batch.append(
                    {
                        "content": f"The {chance.choice(SUBJECTS)} {act}.",
                        "session": f"shop-{day}-{part}",
                        "source": chance.choice(["codex", "claude-code", None]),
                        "role": chance.choice(["user", "assistant"]),
                        "created_at": moment.isoformat(),
                    }
                )
    memory.remember_many(batch)  # type: ignore[arg-type]
    agents = memory._caller.store.agents  # type: ignore[attr-defined]  # noqa: SLF001 a hook does so
    for day in range(20):
        at = now - timedelta(days=day)
        agents.keep_session(agent_session(f"shop-{day}-0", PROJECT, at))
    cycle = memory.sleep().cycle
    for name, text in SCRIPTS.items():
        memory.remember(
            text, id=name, session=name, source="chat", role="user", tags=["odd"]
        )
    whole = {"session": "team", "source": "chat", "role": "user"}
    memory.remember("The API listens on port 8080.", id="ended", **whole)  # type: ignore[arg-type]
    memory.remember("The API now listens on port 9090.", **whole)  # type: ignore[arg-type]
    memory.edit(["hebrew"], role="assistant", source="phone")
    lesson = memory.learn("Always answer in British English.").learning.id
    memory.edit_briefing(lesson, drop=True, text=SCRIPTS["hebrew"])
    add_learnings(memory)
    memory.remember("I prefer tabs over spaces.", **whole)  # type: ignore[arg-type]
    memory.remember("I prefer spaces over tabs.", **whole)  # type: ignore[arg-type]
    preference = memory.learnings(query="prefers spaces").learnings[0].id
    memory.endings()
    add_endings(memory, "japanese", "arabic", "hebrew", "endless", "german", "lines")
    memory.undo_ending("endless")
    for question in ("When do we deploy?", "Which port has the API?"):
        memory.context(question, session="team", source="chat")
    figures = memory._caller.store.lists  # type: ignore[attr-defined]  # noqa: SLF001 a daemon's of earlier days
    for day in range(24, 0, -1):
        recalls = chance.randint(8, 60)
        times = Counter({chance.randint(8, 12): recalls, chance.randint(13, 22): 4})
        size = (14_000 - 400 * day) * 1_000
        if day % 7:
            figures.add_figures(f"{now - timedelta(days=day):%Y-%m-%d}", times, size)
    month = memory.list(level="month", limit=1).episodes[0]
    episode = max(
        memory.list(level="episode").episodes, key=lambda each: each.item_count
    )
    recent = f"{now - timedelta(days=3):%Y-%m-%d}"
    return {
        "now": "/",
        "search": "/search?query=when+do+we+deploy",
        "list": "/search",
        "nothing": "/search?session=nobody",
        "injections": "/injections",
        "briefing": "/briefing",
        "timeline": "/timeline",
        "month": f"/month?day={month.covers_from:%Y-%m-%d}",
        "week": f"/week?day={recent}",
        "day": f"/day?day={recent}",
        "sleep": "/sleep",
        "cycle": f"/cycle?cycle={cycle}",
        "plan": "/plan?force=true",
        "undo": f"/undo?cycle={cycle}",
        "episode": f"/summary?id={episode.id}",
        "rollup": f"/summary?id={month.id}",
        "learning": f"/memory?id={preference}",
        "learnings": "/learnings?superseded=true",
        "no learnings": "/learnings?query=nothing+like+it",
        "unlearn": f"/unlearn?id={preference}",
        "dropped": f"/memory?id={lesson}",
        "ended facts": "/ended?undone=all",
        "ended of one": "/ended?id=hebrew",
        "none ended": "/ended?id=nobody",
        "ended": "/memory?id=ended",
        **{name: f"/memory?id={quote(name)}" for name in SCRIPTS},
        "edit": "/edit?id=arabic",
        "supersede": "/supersede?id=ended&query=port",
        "supersede by": "/supersede?id=arabic&from=hebrew",
        "forget": "/forget?session=team",
        "choose": "/forget",
        "health": "/state",
        "checks": "/checks",
        "settings": "/settings",
        "setting": "/setting?key=sleep.model_policy",
        "export": "/export",
        "export of a session": "/export?session=team",
        "subjects": "/subjects",
        "subject": "/subject?name=Ada",
        "subject japanese": f"/subject?name={quote('田中')}",
        "subject arabic": f"/subject?name={quote('نحن')}",
        "project": f"/subject?project={quote(PROJECT)}",
        "source": "/subject?source=codex",
        "nobody": "/subject?name=Zzyzx",
        "hour": f"/day?day={recent}&hour=09",
        "missing": "/memory?id=missing",
    }
