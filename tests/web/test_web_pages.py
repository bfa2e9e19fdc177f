"""What the pages show, change and refuse."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from urllib.parse import urlencode

import pytest
from msgspec.structs import replace as replace_struct
from support.cases import each_case
from web.crowd import add_endings, add_learnings
from web.visitor import PORT, PageReader, Visitor, inject, say, seen_by

from mnemosyned import Memory, Remember
from mnemosyned.http_messages import HttpRequest
from mnemosyned.memory.consolidation import GroupStatus, LogEntry, Progress
from mnemosyned.memory.injections import InjectionTotals
from mnemosyned.memory.values import AgentActivity
from mnemosyned.verbs.memories import Edited, Recalled
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.retention import Forgotten
from mnemosyned.verbs.upkeep import Logged, Stats
from mnemosyned.web import upkeep_pages
from mnemosyned.web.access import WebAccess
from mnemosyned.web.application import FORM, mark_words
from mnemosyned.web.memory_pages import HITS, trace_sentences
from mnemosyned.web.server import ROUTES
from mnemosyned.web.upkeep_pages import draw_flow

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)
EPISODES = (
    "Ada: we deploy on Tuesdays.",
    "The build broke.",
    "Commit 3f2a91c fixed it.",
)


def slept(memory: Memory, *, session: str = "work") -> tuple[str, str]:
    """Remember three memories and sleep; return the ids of the episode and the cycle."""
    for number, text in enumerate(EPISODES):
        memory.remember(
            text, session=session, source="chat", role="ada", id=f"{session}{number}"
        )
    report = memory.sleep(force=True, session=session)
    return report.groups[0].episodes[0], report.cycle


# ------------------------------------------------------------------ access


class Silent:
    """A memory that nobody may ask."""

    def call(self, request: Request[Any]) -> Any:  # noqa: ANN401 as a caller's
        raise AssertionError(request)


def test_the_cookie_is_for_this_page_alone(memory: Memory) -> None:
    page = Visitor(memory).enter()

    cookie = page.headers["Set-Cookie"]
    assert cookie.startswith("mnemosyned-7470=")
    assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict")
    assert (page.status, page.headers["Location"]) == (303, "/")


@each_case("path", [name[4:] for name in ROUTES if name.startswith("GET")])
def test_nobody_sees_a_page_without_being_let_in(path: str) -> None:
    page = Visitor(Silent()).get(path)

    assert page.status == 401
    assert "mnem web" in page.text
    assert page.links == ["/icon.svg", "/page.css", "#main"]


def test_looking_at_the_address_does_not_use_it_up(memory: Memory) -> None:
    visitor = Visitor(memory)
    address = visitor.access.new_address().removeprefix(visitor.access.address)

    assert visitor.follow(address, method="HEAD").status == 401
    assert visitor.follow(address).status == 303


def test_who_was_let_in_may_open_the_address_again(visitor: Visitor) -> None:
    page = visitor.get("/enter", key="used")

    assert (page.status, page.headers["Location"]) == (303, "/")


@each_case("path", [name[5:] for name in ROUTES if name.startswith("POST")])
def test_no_other_session_and_no_other_page_makes_a_change(path: str) -> None:
    visitor, other = Visitor.let_in(Silent()), Visitor.let_in(Silent())
    fields = {"id": "stays", "mark": "x", "pinned": "true"}

    for token in ("", other.token(), visitor.token()[:-1], "ÿ"):
        page = visitor.post(path, token=token, **fields)
        assert (page.status, "another session" in page.text) == (403, True)
    body = urlencode({"token": visitor.token(), **fields}).encode()
    for given in (
        {},
        {"origin": visitor.access.address, "sec-fetch-site": "cross-site"},
    ):
        headers = {**visitor.headers, "content-type": FORM, **given}
        page = visitor.send(HttpRequest("POST", path, "", body, headers, local=False))
        assert (page.status, "another page" in page.text) == (403, True)


@each_case(
    "headers, body",
    [
        ({"content-type": "application/json"}, b'{"id": "stays"}'),
        ({"content-type": "text/plain"}, b"id=stays"),
        ({}, b"id=stays"),
        ({"content-type": FORM}, "id=stäys".encode()),
        ({"content-type": FORM}, b"id=%ff"),
        ({"content-type": FORM}, b"a=1&" * 200),
    ],
)
def test_a_change_is_a_form(
    visitor: Visitor, headers: dict[str, str], body: bytes
) -> None:
    every = {**visitor.headers, **headers, "origin": visitor.access.address}

    page = visitor.send(HttpRequest("POST", "/pin", "", body, every, local=False))

    assert page.status == 400


@each_case(
    "method, path, status",
    [
        ("POST", "/search", 404),
        ("GET", "/pin", 404),
        ("PUT", "/", 404),
        ("DELETE", "/memory", 404),
        ("GET", "/page.css/../x", 404),
        ("GET", "/../../etc/passwd", 404),
        ("GET", "/templates/base.html", 404),
        ("POST", "/page.css", 404),
        ("GET", "/memory", 400),
        ("GET", "/memory?id=unknown", 404),
        ("GET", "/cycle?cycle=unknown", 404),
        ("GET", "/day?day=tomorrow", 400),
        ("GET", "/day?day=0001-01-01", 400),
        ("GET", "/month?day=9999-12-31", 400),
        ("GET", "/search?after=nonsense", 200),
        ("GET", "/injections?rated=nonsense", 400),
        ("GET", "/sleep?after=-1", 400),
        ("GET", "/cycle?cycle=last&from=many", 404),
        ("GET", "/edit?id=unknown&mark=x&text=y", 404),
    ],
)
def test_mistakes_are_named_on_a_page(
    visitor: Visitor, method: str, path: str, status: int
) -> None:
    headers = {
        **visitor.headers,
        "origin": visitor.access.address,
        "content-type": FORM,
    }
    name, _, query = path.partition("?")
    body = f"token={visitor.token()}".encode() if method == "POST" else b""

    page = visitor.send(HttpRequest(method, name, query, body, headers, local=False))

    assert page.status == status
    assert PageReader(page.source).with_attribute("role")


def test_an_unexpected_error_shows_nothing_of_itself(visitor: Visitor) -> None:
    class Broken:
        def call(self, _: object) -> object:
            raise RuntimeError("the words of a memory")

    broken = Visitor(Broken(), visitor.access, headers=visitor.headers)  # type: ignore[arg-type]

    page = broken.get("/")

    assert page.status == 500
    assert "words of a memory" not in page.source


def test_refreshed_figures_are_no_use_of_the_page(visitor: Visitor) -> None:
    moments = count(step=60.0)
    access = WebAccess(PORT, now=lambda: next(moments))
    visitor = Visitor.let_in(visitor.caller, access)

    unused_s = visitor.access.unused_s
    visitor.headers["x-fragment"] = "live"
    visitor.get("/")
    assert visitor.access.unused_s > unused_s

    visitor.headers["x-fragment"] = "typed"
    visitor.get("/search")
    assert visitor.access.unused_s == unused_s


def test_the_pages_are_in_use_while_a_request_runs(visitor: Visitor) -> None:
    moments, seen = count(step=60.0), list[float]()
    access = WebAccess(PORT, now=lambda: next(moments))

    class Slow:
        def call(self, request: Request[Any]) -> object:
            seen.append(access.unused_s)
            return visitor.caller.call(request)

    Visitor.let_in(Slow(), access).get("/search")  # type: ignore[arg-type]

    assert set(seen) == {0.0}
    assert access.unused_s == 60.0


# ----------------------------------------------------------------- hidden


def test_hidden_characters_are_seen_and_kept(visitor: Visitor, memory: Memory) -> None:
    text = "\n  right \u202eleft\u202c zero\u200bwidth \r\nend  "
    memory.remember(text, id="odd", session="s")

    shown = visitor.get("/memory", id="odd")
    form = visitor.get("/edit", id="odd")

    assert "\\u202eleft\\u202c zero\\u200bwidth" in shown.source
    sent = re.search(
        r'<textarea id="text"[^>]*>\n(.*?)</textarea>', form.source, re.DOTALL
    )
    assert sent
    back = sent[1].replace("\r\n", "\n").replace("\n", "\r\n")
    page = visitor.post(
        "/edit", id="odd", mark=form.field("mark"), text=back, session="s"
    )
    assert page.status == 303
    found = memory.get("odd").memory
    assert found
    assert (found.content, found.edited_at) == (text, None)


# -------------------------------------------------------------------- pages


def test_only_a_long_text_has_one_direction(visitor: Visitor, memory: Memory) -> None:
    for id, words in (("long", 30_000), ("short", 3_000)):
        memory.remember("word " * words, id=id)
        for path in ("/memory", "/edit", "/supersede"):
            classes = next(
                attributes.get("class") or ""
                for tag, attributes in PageReader(
                    visitor.get(path, id=id).source
                ).elements
                if tag in ("blockquote", "textarea")
            )
            assert ("long" in classes.split()) == (id == "long"), path


def test_the_first_page_says_how_it_is(visitor: Visitor, memory: Memory) -> None:
    memory.remember("We deploy on Tuesdays.", session="work", role="ada", pinned=True)

    page = visitor.get("/")

    assert "Working 1 of 10,000" in page.text
    assert "We deploy on Tuesdays." in page.text
    assert "Remembered 1, at most 1 a day" in page.text
    assert "Time of recalls: none yet" in page.text
    assert "Summaries by" in page.text
    assert [link for link in page.links if link.startswith("/memory?id=")]


def test_the_first_page_draws_daily_figures(visitor: Visitor, memory: Memory) -> None:
    add = memory._caller.store.lists.add_figures  # type: ignore[attr-defined]  # noqa: SLF001 a daemon does so
    yesterday = memory.days().days[-2].day
    add(f"{yesterday}", Counter({4: 9, 16: 3}), 3_000_000_000)

    page = visitor.get("/")

    assert "Recalled 12, at most 12 a day" in page.text
    assert "Half of recalls within 2 ms; 95 % within 16 ms" in page.text
    assert f"on {yesterday}" in page.text
    assert f"{yesterday}: 3.0 GB" in page.text
    labels = PageReader(page.source).with_attribute("aria-label")
    assert any(f"{yesterday} 16.0" in label for label in labels)


def test_a_fragment_is_the_main_part_alone(visitor: Visitor) -> None:
    visitor.headers["x-fragment"] = "typed"

    page = visitor.get("/search", query="deploy")

    assert "<html" not in page.source
    assert "<form" not in page.source
    assert 'id="results"' in page.source


def test_search_marks_the_words_and_says_why(visitor: Visitor, memory: Memory) -> None:
    memory.remember("We deploy on Tuesdays.", session="work", role="ada", id="tue")
    memory.remember("We deployed it on Friday.", session="home", role="bob", id="fri")

    page = visitor.get("/search", query="deploy", role="bob", session="home")

    assert "<mark>deployed</mark>" in page.source
    assert "/memory?id=fri" in page.links
    assert "/memory?id=tue" not in page.links
    assert "words: deploy" in page.text
    assert "confidence" in page.text


def test_the_first_page_says_what_is_wrong(visitor: Visitor, memory: Memory) -> None:
    moment = memory.remember("note").created_at
    hook = AgentActivity(
        client="codex", event="Stop", calls=1_234, stored=56, characters=7_890, failures=1,
        mean_ms=4.25, slowest_ms=9.0, called_at=moment, failure="the socket was <gone>",
    )  # fmt: skip

    seen = seen_by(
        visitor,
        Stats,
        lambda stats: {
            "problems": ["the disk is full"],
            "warnings": ["others can write to the folder"],
            "agents": [hook],
            "injections": InjectionTotals(
                injections=3, tokens=900, useful=1, precision=0.5
            ),
            "sleep": replace_struct(
                stats.sleep,
                progress=Progress(40, 90),
                paused_until=moment,
                waits_for="a backup",
                last_cycle=moment,
            ),
        },
    )
    page = seen.get("/")

    for text in (
        "the disk is full", "others can write", "40 of 90", "paused until", "waits: a backup",
        "codex Stop 1,234 56 7,890 4.2 1 the socket was <gone>", "3 times, 900 tokens, 50 %",
    ):  # fmt: skip
        assert text in page.text
    assert "Next: paused until" in seen.get("/sleep").text


def test_a_cycle_shows_why_no_model_wrote_it(visitor: Visitor, memory: Memory) -> None:
    _, cycle = slept(memory)
    visited = seen_by(
        visitor,
        Logged,
        lambda logged: {
            "rows": [
                replace(
                    row,
                    fallback_reason="the number 4711 is in no source",
                    model_share=0.25,
                    error="the disk <was> full",
                )
                for row in logged.rows
            ]
        },
    )

    page = visited.get("/cycle", cycle=cycle)

    assert "No model's summary: the number 4711 is in no source" in page.text
    assert "25 % by a model" in page.text
    assert "the disk <was> full" in page.text
    assert "1 by fallback" in visited.get("/sleep").text


def test_a_huge_cycle_is_not_counted_whole(
    visitor: Visitor, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_pages, "CYCLE_ROWS_MAX", 1_000)
    _, cycle = slept(memory)
    visited = seen_by(visitor, Logged, lambda logged: {"rows": logged.rows[:1] * 1_000})

    assert "of its last 1,000" in visited.get("/cycle", cycle=cycle).text
    cycles = visited.get("/sleep")
    assert "of its last 1,000 rows" in cycles.text
    assert [link for link in cycles.links if "after=" in link]


def test_the_cycle_after_a_large_import_is_counted_whole(
    visitor: Visitor, memory: Memory
) -> None:
    notes = [Remember(f"Note {n}.", session=f"s{n}") for n in range(1_001)]
    memory.remember_many(notes[:1])
    memory.remember_many(notes[1:])
    cycle = memory.sleep(force=True).cycle

    page = visitor.get("/cycle", cycle=cycle)
    cycles = visitor.get("/sleep")

    assert "Memories 1,001 became episodes 1,001 " in page.text
    assert " explicit 1,001 1,001 " in cycles.text
    assert "of its last" not in page.text + cycles.text


def test_receipts_say_what_waits(visitor: Visitor, memory: Memory) -> None:
    moment = memory.remember("note", id="n", session="s").created_at
    forgotten = {"final_at": moment, "call": "c1", "complete": False, "purge_in_s": 3.0}
    waiting = {**forgotten, "backups": ["old.db"]}
    secrets = {"restored": 2, "secrets": "masked", "note": "summaries wait"}

    fields = {"id": "n", "mark": visitor.get("/edit", id="n").field("mark")}
    editing = seen_by(visitor, Edited, lambda _: secrets)
    edited = editing.post("/edit", text="other", session="s", **fields).text
    forgetting = seen_by(visitor, Forgotten, lambda _: waiting)
    preview = forgetting.get("/forget", id="n")
    receipt = forgetting.post("/forget", id="n", mark=preview.field("mark")).text

    for text in ("Back in working memory 2", "Secrets masked", "Waits summaries wait"):
        assert text in edited
    assert "old.db" in preview.text
    for text in ("by mnem restore c1", "are deleted in 3 s", "Stays in old.db"):
        assert text in receipt


def test_the_nearest_are_apart_from_hits(visitor: Visitor, memory: Memory) -> None:
    memory.remember("The quarterly invoices go to Bob.", id="bob")
    memory.sleep(force=True)

    page = seen_by(
        visitor,
        Recalled,
        lambda found: {"hits": [], "nearest": found.hits, "note": "a note"},
    ).get("/search", query="invoices of the moon base")

    assert "No memory is clearly relevant." in page.text
    assert "a note" in page.text
    assert page.text.index("Nearest memories") > 0
    assert "/memory?id=bob" in page.links
    assert "1 of 1 original shown" in page.text


def test_a_mistake_in_a_filter_is_named_while_a_person_types(visitor: Visitor) -> None:
    page = visitor.get("/search", query="deploy", since="soonish")

    assert page.status == 200
    assert "soonish" in page.text


def test_more_hits_are_one_click_away(visitor: Visitor, memory: Memory) -> None:
    for number in range(int(HITS) + 5):
        memory.remember(
            f"A ferry number {number} to island {number * 7}", session=f"s{number}"
        )

    page = visitor.get("/search", query="ferry")
    (more,) = [link for link in page.links if "limit=100" in link]

    assert visitor.follow(more).source.count('class="why"') == int(HITS) + 5


def test_originals_of_repeats_do_not_count_as_those_of_a_summary(
    visitor: Visitor, memory: Memory
) -> None:
    for session in ("a", "b"):
        memory.remember("We deploy the shop on Tuesdays.", session=session, id=session)
    memory.sleep(force=True)

    page = visitor.get("/search", query="deploy")

    assert "and 1 alike" in page.text
    assert {"/memory?id=a", "/memory?id=b"} <= set(page.links)
    assert "1 of 1 original match" in page.text


def test_a_match_deep_in_an_original_is_in_its_first_lines(
    visitor: Visitor, memory: Memory
) -> None:
    memory.remember("Filler words. " * 30 + "We deploy on Tuesdays.", session="a")
    memory.sleep(force=True)

    page = visitor.get("/search", query="deploy")

    assert re.search(
        r'class="text short"[^>]*>….{0,80}<mark>deploy</mark>', page.source
    )


def remember_notes(memory: Memory) -> list[str]:
    notes = [Remember(f"note {n}", id=f"n{n}", session="s") for n in range(120)]
    memory.remember_many(notes)
    return [each.id for each in memory.list(limit=1_000).memories]


def remember_lines(memory: Memory) -> list[str]:
    moments = [NOON + timedelta(hours=number) for number in range(120)]
    memory.remember_many(
        [
            Remember(f"Ada wrote line {number}.", id=f"n{number}", created_at=moment)
            for number, moment in enumerate(moments)
        ]
    )
    return [f"n{number}" for number in reversed(range(120))]


def inject_many(memory: Memory) -> list[str]:
    memory.remember("We deploy on Tuesdays.", id="tue")
    for number in range(40):
        inject(memory, "tue", prompt=f"question {number}?")
    return [each.prompt for each in memory.injections(limit=100).injections]


def learn_many(memory: Memory) -> list[str]:
    add_learnings(memory)
    return [each.id for each in memory.learnings(limit=1_000)]


def end_many(memory: Memory) -> list[str]:
    ids = [f"memory{number:03}" for number in range(80)]
    for id in ids:
        memory.remember(f"It is {id} now.", id=id)
    memory.endings()
    add_endings(memory, *ids)
    return [each.id for each in memory.endings(limit=1_000).endings]


@pytest.mark.parametrize(
    ("fill", "address", "entry"),
    [
        (remember_notes, "/search?session=s", r'href="/memory\?id=(n\d+)"'),
        (remember_lines, "/subject?name=Ada", r'href="/memory\?id=(n\d+)"'),
        (inject_many, "/injections", r"question \d+\?"),
        (learn_many, "/learnings", r'href="/unlearn\?id=(\w+)"'),
        (end_many, "/ended", r'name="id" value="(\w+)"'),
    ],
)
def test_every_entry_of_a_list_is_on_just_one_page(
    visitor: Visitor,
    memory: Memory,
    fill: Callable[[Memory], list[str]],
    address: str,
    entry: str,
) -> None:
    expected = fill(memory)

    pages = [page.source for _, page in visitor.pages(address)]

    lists = [page[max(page.rfind("<h2>"), 0) :] for page in pages]
    shown = [id for page in lists for id in dict.fromkeys(re.findall(entry, page))]
    assert shown == expected
    assert len(pages) > 1


def test_a_summary_leads_to_the_exact_words(visitor: Visitor, memory: Memory) -> None:
    episode, _ = slept(memory)

    assert (
        visitor.get("/memory", id=episode).headers["Location"]
        == f"/summary?id={episode}"
    )
    summary = visitor.get("/summary", id=episode)
    original = visitor.get("/memory", id="work0")

    assert all(text in summary.text for text in EPISODES)
    assert "said in 2" in summary.text
    assert "/memory?id=work2" in summary.links
    assert f"/summary?id={episode}" in original.links
    assert "3f2a91c" in summary.text


def test_sentences_are_traced_to_the_source_that_says_them() -> None:
    sources = [
        "Ada moved the boiler to the cellar.",
        "Bob paid 180 euros.",
        "Tea at nine.",
    ]
    summary = (
        "Bob paid 180 euros. Ada moved the boiler.\nA zebra and Bob met Ada in Nairobi."
    )

    traced = list(trace_sentences(summary, sources))

    assert [(each.source, each.share) for each in traced[:2]] == [(2, 1.0), (1, 1.0)]
    assert traced[2].source == 0
    assert traced[2].starts_line


def test_what_ended_a_statement_is_shown(visitor: Visitor, memory: Memory) -> None:
    say(memory, "The API listens on port 8080.", id="old")
    say(memory, "The API now listens on port 9090.", id="new")
    assert memory.endings().endings

    page = visitor.get("/memory", id="old")
    assert re.search(
        r"Until .+: The API listens on port 8080\. Then: The API now", page.text
    )
    assert "/memory?id=new" in page.links

    assert visitor.post("/applies", id="old").headers["Location"] == "/memory?id=old"
    assert "Then: " not in visitor.get("/memory", id="old").text


@pytest.mark.thorough
def test_lists_show_beginnings_of_long_texts(visitor: Visitor, memory: Memory) -> None:
    for number in range(20):
        words = 12_000 if number == 7 else 2_000
        text = f"The ferry number {number} sails. " + f"word{number} " * words
        memory.remember(text, id=f"m{number}", session=f"s{number}")
    lists = ["/", "/search", "/search?query=ferry"]
    sizes = {path: len(visitor.follow(path).source) for path in lists}
    memory.sleep(force=True)
    cycle = memory.log(limit=1).rows[0].cycle
    for path in (*lists, f"/cycle?cycle={cycle}", "/timeline", "/injections"):
        sizes[f"{path}, asleep"] = len(visitor.follow(path).source)

    assert max(sizes.values()) < 150_000, sizes
    assert len(visitor.get("/memory", id="m7").source) > 70_000


def test_a_day_shows_a_hundred_of_its_episodes(
    visitor: Visitor, memory: Memory
) -> None:
    nine = "2026-03-09T09:00:00Z"
    memory.remember_many(
        [
            Remember(
                f"The ferry {number} sails.", session=f"s{number}", created_at=nine
            )
            for number in range(103)
        ]
    )
    memory.sleep(force=True)
    day = memory.list(level="day").episodes[0].id

    page = visitor.get("/summary", id=day)

    assert page.source.count('<p class="meta"><a class="row"') == 100
    assert "and 3 more" in page.text
    assert "/day?day=2026-03-09" in page.links


# ------------------------------------------------------------------ changes


def test_an_edit_keeps_the_earlier_words(visitor: Visitor, memory: Memory) -> None:
    memory.remember("We deploy on Tuesday.", id="m", session="work", tags=["b", "a"])
    form = visitor.get("/edit", id="m")

    page = visitor.post(
        "/edit", id="m", mark=form.field("mark"), text="We deploy on Monday.", session="ops",
        source="chat", tags="a,c",
    )  # fmt: skip

    assert "Changed 1 memory" in page.text
    found = memory.get("m").memory
    assert found
    assert (found.content, found.session, found.source) == (
        "We deploy on Monday.",
        "ops",
        "chat",
    )
    assert found.tags == ("a", "c")
    assert "We deploy on Tuesday." in visitor.get("/memory", id="m").text


def test_secrets_are_masked_but_in_the_form(visitor: Visitor, memory: Memory) -> None:
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz123456"  # noqa: S105 made up
    memory.remember(f"The API key is {secret}", id="m", session="s")

    for page in (
        "/",
        "/search",
        "/memory?id=m",
        "/search?query=API+key",
        "/forget?id=m",
    ):
        assert secret not in visitor.follow(page).source, page
    assert secret in visitor.get("/edit", id="m").source


def test_a_memory_is_pinned_and_put_back(visitor: Visitor, memory: Memory) -> None:
    memory.remember("keep", id="m")

    visitor.post("/pin", id="m")
    assert "pinned" in visitor.get("/memory", id="m").text
    visitor.post("/unpin", id="m")
    assert not memory.get("m").memory.pinned  # type: ignore[union-attr]
    slept(memory)
    page = visitor.post("/restore", id="work1")
    assert page.headers["Location"] == "/memory?id=work1"
    assert memory.get("work1").memory.tier == "working"  # type: ignore[union-attr]


def test_forgetting_forgets_what_it_previewed(visitor: Visitor, memory: Memory) -> None:
    for number in range(3):
        memory.remember(f"secret plan {number}", id=f"p{number}", session="plans")
    memory.remember("stays", id="stays")

    preview = visitor.get("/forget", session="plans")
    assert "Memories 3 (3 working, 0 archived)" in preview.text
    assert memory.get("p0").memory
    memory.remember("came later", id="later", session="plans")
    receipt = visitor.post("/forget", session="plans", mark=preview.field("mark"))

    assert "Memories 3" in receipt.text
    assert {each.id for each in memory.list().memories} == {"stays", "later"}
    single = visitor.get("/forget", id="later")
    assert "Forget 1 memory" in single.text
    assert visitor.post("/forget", id="later").status == 400
    assert visitor.post("/forget", id="later", mark=single.field("mark")).status == 200
    assert [each.id for each in memory.list().memories] == ["stays"]


def test_a_day_that_grew_is_not_forgotten(visitor: Visitor, memory: Memory) -> None:
    for session in ("first", "second"):
        memory.remember(
            f"The {session} ferry sails at nine.",
            id=session,
            session=session,
            created_at="2026-03-09T09:00:00Z",
        )
        memory.sleep(force=True)
        day = memory.list(level="day").episodes[0].id
        if session == "first":
            preview = visitor.get("/forget", id=day)

    page = visitor.post("/forget", id=day, mark=preview.field("mark"))

    assert "Memories 1 (" in preview.text
    assert (page.status, "has changed since the preview" in page.text) == (409, True)
    assert memory.get("first").memory


def test_learnings_that_would_go_are_named(visitor: Visitor, memory: Memory) -> None:
    memory.learn("Always answer in British English.")

    assert "Forget 1 learning " in visitor.get("/forget", query="British").text


def test_nothing_is_forgotten_unseen(visitor: Visitor, memory: Memory) -> None:
    memory.remember("stays", id="stays")

    assert visitor.post("/forget", session="default").status == 400
    assert visitor.post("/forget", session="default", mark="x").status == 400
    assert visitor.post("/forget", mark="x").status == 400
    assert "Choose what to forget" in visitor.get("/forget").text
    assert memory.get("stays").memory


# ----------------------------------------------------------------- timeline


def test_the_timeline_leads_to_a_days_memories(
    visitor: Visitor, memory: Memory
) -> None:
    memory.remember("tea at nine", id="tea", created_at="yesterday 09:00")

    timeline = visitor.get("/timeline")
    counted = re.findall(r'href="(/day[^"]*)">.*?figure">(\d*)<', timeline.source)
    (day,) = [link for link, count in counted if count == "1"]
    page = visitor.follow(day)

    assert "/memory?id=tea" in page.links
    steps = [
        link for link in page.links if link.startswith(("/day?", "/week?", "/month?"))
    ]
    assert len(steps) == 4 + 24
    for step in steps:
        assert visitor.follow(step).status == 200


def test_a_week_shows_what_has_no_summary(visitor: Visitor, memory: Memory) -> None:
    memory.remember("tea at nine", id="tea", created_at="2026-03-04T09:00:00Z")

    week = visitor.get("/week", day="2026-03-05")
    month = visitor.get("/month", day="2026-03-31")

    for page in (week, month):
        assert "/memory?id=tea" in page.links
        assert re.findall(r'figure">(\d+)<', page.source) == ["1"]
    assert visitor.get("/month", day="2020-02-29").text.count("Nothing was") == 1


# -------------------------------------------------------------------- sleep


def test_a_cycle_shows_groups_and_originals(visitor: Visitor, memory: Memory) -> None:
    slept(memory, session="home")
    episode, cycle = slept(memory)

    cycles = visitor.get("/sleep")
    page = visitor.get("/cycle", cycle=cycle)

    assert len([link for link in cycles.links if link.startswith("/cycle?")]) == 2
    assert "Memories 3" in page.text
    assert "group 1 of 1" in page.text
    assert f"/summary?id={episode}" in page.links
    for text in EPISODES:
        assert text in page.text


def test_a_cycle_of_many_groups_is_paged(visitor: Visitor, memory: Memory) -> None:
    for number in range(20):
        memory.remember(f"note {number}", session=f"s{number}")
    cycle = memory.sleep(force=True).cycle

    first = visitor.get("/cycle", cycle=cycle)
    (next_groups,) = [link for link in first.links if link.endswith("from=6")]
    last = visitor.get("/cycle", cycle=cycle, **{"from": "18"})

    assert "group 7 of 20" in visitor.follow(next_groups).text
    assert "group 20 of 20" in last.text


def test_a_picture_shows_what_became_of_each_group() -> None:
    entry = LogEntry(
        cycle="c", created_at=datetime.now(UTC), session="s", source=None, trigger="explicit",
        status=GroupStatus.PROMOTED, items_consolidated=2, episode="e", summarizer="aaak",
        summary_preview="", duration_s=0.1, chars_before=100, chars_after=20,
    )  # fmt: skip
    failed = replace(entry, status=GroupStatus.FAILED, chars_after=0)
    fallback = replace(entry, fallback_reason="the number 7 is in no source")
    small = [
        replace(entry, status=GroupStatus.VERBATIM, chars_before=1, chars_after=1)
    ] * 30

    ribbons = draw_flow([entry, *small[:5], failed, fallback, *small])

    assert len(ribbons) == 25
    first, rest = ribbons[0], ribbons[-1]
    # 335 characters are 220 high, a fifth of the first group's are left.
    assert first.outline.startswith("M0 0.0C50 0.0 50 0.0 100 0.0V13.1C50 13.1")
    assert first.outline.endswith("0 65.7Z")
    assert [each.kind for each in ribbons if each.kind != "verbatim"] == [
        "written", "failed", "fallback",
    ]  # fmt: skip
    assert (rest.place, len(rest.groups)) == (None, 14)
    (nothing,) = [each for each in ribbons if each.kind == "failed"]
    top, bottom = re.findall(r"100 ([\d.]+)V([\d.]+)C", nothing.outline)[0]
    assert top == bottom


def test_a_picture_is_as_high_as_its_groups(visitor: Visitor, memory: Memory) -> None:
    for number in range(24):
        memory.remember("a" * (90_000 if number == 0 else 60), session=f"s{number}")
    page = visitor.get("/plan", force="true")

    (height,) = re.findall(r'viewBox="0 0 100 ([\d.]+)"', page.source)
    ends = re.findall(r"V([\d.]+)C50 [\d.]+ 50 [\d.]+ 0 ([\d.]+)Z", page.source)
    assert len(ends) == 24
    assert float(height) == max(float(end) for pair in ends for end in pair)
    assert float(height) > 280


def test_a_cycle_of_roll_ups_has_no_picture(visitor: Visitor, memory: Memory) -> None:
    _, cycle = slept(memory)
    visited = seen_by(
        visitor,
        Logged,
        lambda logged: {"rows": [replace(row, level=1) for row in logged.rows]},
    )

    page = visited.get("/cycle", cycle=cycle)

    assert page.status == 200
    assert "Days, weeks and months" in page.text
    assert 'class="flow"' not in page.source


def test_a_picture_leads_to_each_group(visitor: Visitor, memory: Memory) -> None:
    for number in range(8):
        memory.remember(f"note {number}", session=f"s{number}")
    cycle = memory.sleep(force=True).cycle

    page = visitor.get("/cycle", cycle=cycle)

    assert f"/cycle?cycle={cycle}&from=6#group7" in page.links
    assert "s7: 6 → 6 characters, kept word for word" in page.source
    assert 'id="group5"' in page.source


def test_a_plan_changes_nothing(visitor: Visitor, memory: Memory) -> None:
    memory.remember("note", id="n")

    assert "Memories 0" in visitor.get("/plan").text
    planned = visitor.get("/plan", force="1")
    assert "Memories 1" in planned.text
    assert 'class="planned"' in planned.source
    assert memory.get("n").memory.tier == "working"  # type: ignore[union-attr]


def test_a_sleep_is_undone_after_a_preview(visitor: Visitor, memory: Memory) -> None:
    _, cycle = slept(memory)

    preview = visitor.get("/undo", cycle=cycle)
    assert "Would come back 3 memories" in preview.text
    receipt = visitor.post("/undo", cycle=preview.field("cycle"))

    assert "Back in working memory 3 memories" in receipt.text
    assert memory.get("work0").memory.tier == "working"  # type: ignore[union-attr]
    assert "undone" in visitor.get("/cycle", cycle=cycle).text
    assert visitor.get("/undo", cycle=cycle).status == 409


# --------------------------------------------------------------- injections


def test_an_injection_is_rated_in_the_list(visitor: Visitor, memory: Memory) -> None:
    memory.remember("We deploy on Tuesdays.", id="tue", session="work")
    injection = inject(memory, "tue", project="shop")

    page = visitor.get("/injections", project="shop")
    assert "when do we deploy?" in page.text
    assert "words: deploy" in page.text
    assert "/memory?id=tue" in page.links
    done = visitor.post(
        "/rate", id=injection, outcome="useful", project="shop", rated="unknown"
    )

    assert done.headers["Location"] == "/injections?project=shop&rated=unknown"
    assert memory.injections().totals.useful == 1
    assert "No agent was given" in visitor.follow(done.headers["Location"]).text
    page = visitor.get("/injections", rated="useful")
    assert page.field("rated") == "useful"
    assert "when do we deploy?" in page.text
    assert (
        visitor.get("/injections", project="other").text.count("No agent was given")
        == 1
    )
    assert "/briefing?project=shop" in visitor.get("/injections").links


def test_a_briefing_outside_of_projects_offers_the_projects(
    visitor: Visitor, memory: Memory
) -> None:
    inject(memory, "tue", project="shop")

    page = visitor.get("/briefing")

    assert "Choose a project: shop." in page.text
    assert "/briefing?project=shop" in page.links


def test_an_empty_memory_says_how_it_is_filled(visitor: Visitor) -> None:
    assert "mnem setup connects your agents" in visitor.get("/").text
    assert "Nothing is remembered yet." in visitor.get("/search").text
    assert "Leave a filter out" in visitor.get("/search", session="none").text


def test_a_line_of_the_briefing_is_changed(visitor: Visitor, memory: Memory) -> None:
    learning = memory.learn("Always answer in British English.").learning.id
    assert "Always answer in British English." in visitor.get("/briefing").text

    page = visitor.post(
        "/briefing", id=learning, pin="true", drop="false", project="shop"
    )
    assert page.headers["Location"] == "/briefing?project=shop"
    visitor.post("/briefing", id=learning, text="Write British English.")
    page = visitor.get("/briefing")
    assert "Write British English." in page.text
    assert "Unpin" in page.text

    visitor.post("/briefing", id=learning, drop="true", pin="false")
    assert "The session would get nothing" in visitor.get("/briefing").text
    visitor.post("/briefing", id=learning, pin="false", drop="false", text="")
    assert "Always answer" in visitor.get("/briefing").text


def test_the_briefing_of_a_prompt_says_what_is_left_out(
    visitor: Visitor, memory: Memory
) -> None:
    learning = memory.learn("Always answer in British English.").learning.id
    memory.edit_briefing(learning, drop=True)

    memory.remember("Ana and Jo deploy the harbour app on Mondays.", id="deploys")
    prompt = "When do we deploy the harbour app?"
    page = visitor.get("/briefing", prompt=prompt)

    assert page.field("prompt") == prompt
    assert "Ana and Jo deploy" in page.text
    done = visitor.post("/briefing", id="deploys", drop="true", prompt=prompt)
    assert done.headers["Location"].startswith("/briefing?prompt=When")
    page = visitor.follow(done.headers["Location"])
    assert "The session would get nothing with this prompt" in page.text
    assert "Left out, nearest first" in page.text
    assert "you dropped it" in page.text


def test_rewording_starts_from_all_or_none(visitor: Visitor, memory: Memory) -> None:
    text = "Always answer in British English, " + "and name the source, " * 15 + "end."
    learning = memory.learn(text).learning.id
    memory.remember("The ferry sails at nine. " * 30, id="long", session="s")
    visitor.post("/briefing", id="long", pin="true")

    def fields() -> list[str]:
        page = visitor.get("/briefing")
        return re.findall(r"<textarea[^>]*>\n(.*?)</textarea>", page.source)

    assert fields() == ["", text]
    visitor.post("/briefing", id=learning, text="Write British English.")
    assert fields() == ["", "Write British English."]


# ------------------------------------------------------------------- parts


def test_marked_words_are_escaped_like_all_others() -> None:
    marked = mark_words("a <deploy> & \u202edeployed", ["deploy"])

    assert marked == "a &lt;<mark>deploy</mark>&gt; &amp; \\u202e<mark>deployed</mark>"
