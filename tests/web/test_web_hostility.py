"""Texts that attack the pages: whatever holds them, they become no part of any page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from web.crowd import add_endings
from web.hostile import HOSTILE
from web.visitor import Page, PageReader, Visitor, inject

from mnemosyned import Memory
from mnemosyned.web.application import HTML
from mnemosyned.web.server import ROUTES

ELEMENTS = set(
    "html head meta title link script body a header nav ul ol li form label input main h1 h2 h3 p "
    "div span dl dt dd section figure figcaption svg line rect path table caption thead tbody tr th td "
    "time bdi mark details summary meter progress q blockquote code kbd pre footer dialog button "
    "select option datalist textarea del ins".split()
)
ADDRESSES = ("href", "src", "action", "formaction")
LEARNED = 6
"""Texts in one learning."""


def name_of(text: str) -> str:
    """The beginning of a text, as an id or the name of a session may be."""
    return re.sub("[\\x00-\\x1f]", "", text)[:90].strip() or "blank"


def tag_of(text: str) -> str:
    """The beginning of a text, as a tag may be."""
    seen = "".join(letter for letter in text if letter.isprintable())
    return seen.replace(",", "")[:50].strip() or "blank"


def fill(memory: Memory) -> list[str]:
    """Put each hostile text wherever a text can be, half of it asleep; return ids of memories."""
    texts = [text for text in HOSTILE if text.strip()]
    ids = [f"{number}{name_of(text)}" for number, text in enumerate(texts)]
    batch = [
        {
            "content": text,
            "id": id,
            "session": name_of(text),
            "source": name_of(text),
            "role": name_of(text),
            "tags": [tag_of(text)],
            "metadata": {name_of(text): text},
        }
        for id, text in zip(ids, texts, strict=True)
    ]
    memory.remember_many(batch[::2])  # type: ignore[arg-type]
    memory.sleep(force=True)
    memory.remember_many(batch[1::2])  # type: ignore[arg-type]
    for id, text in zip(ids, texts, strict=True):
        name = name_of(text)
        given: dict[str, Any] = {
            "client": text,
            "session": name,
            "project": name,
            "prompt": text,
        }
        inject(memory, id, text, reason=text, **given)
    # A learning is compared with all others: few that hold several texts each.
    for place in range(0, len(texts), LEARNED):
        several = "\n".join(text[:300] for text in texts[place : place + LEARNED])
        memory.learn(several, session=name_of(texts[place]))
    for learning in memory.learnings(limit=1_000):
        memory.edit_briefing(learning.id, text=learning.text)
    memory.edit([ids[1]], text="It was worse before.")
    add_endings(memory, *ids[::6])
    return ids


@pytest.fixture(scope="module")
def attacked() -> Iterator[tuple[Visitor, list[str]]]:
    with Memory(":memory:") as memory:
        ids = fill(memory)
        yield Visitor.let_in(memory), ids


def check(pages: Iterable[tuple[str, Page]]) -> None:
    """Fail where a page has elements, scripts or addresses that are not its own."""
    for address, page in pages:
        assert page.status in (200, 303, 400, 404, 409), (address, page.text)
        if page.response.content_type != HTML:
            continue
        for tag, attributes in PageReader(page.source).elements:
            assert tag in ELEMENTS, (tag, address)
            assert not [name for name in attributes if name.startswith("on")]
            assert "style" not in attributes
            for name in ADDRESSES:
                assert (attributes.get(name) or "/")[0] in "/#", (attributes, address)
                assert not (attributes.get(name) or "").startswith("//")


in_parts = pytest.mark.parametrize(
    "part",
    [0, *(pytest.param(part, marks=pytest.mark.thorough) for part in range(1, 8))],
)
GETS = sorted(name[4:] for name in ROUTES if name.startswith("GET"))
LISTS = [path for path in GETS if path not in ("/download", "/checks")]


def fields_of(text: str, id: str) -> dict[str, str]:
    """Every field that a page may take, with a hostile text where one can stand."""
    texts = (
        "query session source role tag project person name key words rated tier kind"
    )
    return {**dict.fromkeys(texts.split(), text), "id": id, "limit": "1"}


@pytest.mark.thorough
def test_lists_show_hostile_texts_as_texts(attacked: tuple[Visitor, list[str]]) -> None:
    visitor, _ = attacked
    cycle = visitor.caller.log().rows[0].cycle  # type: ignore[attr-defined]
    shown = [page for path in LISTS for page in visitor.pages(path)]
    shown += visitor.pages("/plan?force=true")
    shown += visitor.pages(f"/undo?cycle={cycle}")
    groups = visitor.get("/cycle", cycle=cycle)
    shown += [("/cycle", groups), *visitor.pages(f"/cycle?cycle={cycle}&from=90")]
    learned = [
        (path, visitor.get(path, id=learning.id))
        for learning in visitor.caller.learnings(limit=1_000)  # type: ignore[attr-defined]
        for path in ("/memory", "/unlearn")
    ]

    assert {page.status for _, page in learned} == {200}
    check([*shown, *learned])
    words = " ".join(page.source for _, page in shown)
    assert all(
        text in words for text in ("evil.example", "&lt;script&gt;", "onauxclick")
    )


@in_parts
def test_every_page_takes_hostile_texts_as_texts(
    attacked: tuple[Visitor, list[str]], part: int
) -> None:
    visitor, ids = attacked
    texts = [text for text in HOSTILE if text.strip()]
    # Each text meets the search and one other page, each page many texts.
    for number, (id, text) in [*enumerate(zip(ids, texts, strict=True))][part::8]:
        fields = fields_of(text, id)
        for path in ("/search", GETS[number // 8 % len(GETS)]):
            if path != "/checks":
                check([(f"{path} {text}", visitor.get(path, **fields))])


@in_parts
def test_the_pages_of_a_memory_show_hostile_texts_as_texts(
    attacked: tuple[Visitor, list[str]], part: int
) -> None:
    visitor, ids = attacked
    for id in ids[part::8]:
        check(
            (f"{path} {id}", visitor.get(path, id=id))
            for path in ("/memory", "/edit", "/supersede", "/forget", "/ended")
        )


@in_parts
def test_the_pages_of_subjects_show_hostile_texts_as_texts(
    attacked: tuple[Visitor, list[str]], part: int
) -> None:
    visitor, _ = attacked
    names = [name_of(text) for text in HOSTILE][part::16]
    pages = [
        (f"{kind} {name}", visitor.get("/subject", **{kind: name}))
        for name in names
        for kind in ("name", "project", "source")
    ]

    check(pages)
    assert sum(page.status == 200 for _, page in pages) > 2 * len(names)
