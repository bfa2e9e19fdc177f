"""Words written joined, with a hyphen or apart find each other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mnemosyned.assembly.embedded import Memory

TEXTS = {
    "hyphen": "the Wi-Fi at the cabin is heron-lagoon",
    "joined": "wifi on the boat: albatross",
    "duty": "on-call this month: Tomasz",
    "oncall": "the oncall phone is in the drawer",
    "late": "late check-in until eleven",
    "checkin": "checkin closes an hour before departure",
    "server": "the file server hums",
    "fileserver": "our fileserver has a new disk",
}
NOISE = [f"note {number} about gardens, soup and trains" for number in range(40)]


@pytest.fixture(scope="module", params=[False, True], ids=["before", "after sleep"])
def memory(request: pytest.FixtureRequest) -> Iterator[Memory]:
    with Memory(":memory:") as memory:
        for id, text in TEXTS.items():
            memory.remember(text, id=id, session=id)
        for text in NOISE:
            memory.remember(text)
        if request.param:
            memory.sleep(force=True)
        yield memory


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("wifi", {"hyphen", "joined"}),
        ("Wi-Fi", {"hyphen", "joined"}),
        ("wi fi", {"hyphen", "joined"}),
        ("what is the wifi password", {"hyphen", "joined"}),
        ("oncall", {"duty", "oncall"}),
        ("on-call", {"duty", "oncall"}),
        ("who is on call", {"duty", "oncall"}),
        ("checkin", {"late", "checkin"}),
        ("check-in", {"late", "checkin"}),
        ("check in", {"late", "checkin"}),
        ("fileserver", {"server", "fileserver"}),
        ("file server", {"server", "fileserver"}),
        ("file-server", {"server", "fileserver"}),
    ],
)
def test_a_compound_is_found_however_it_is_written(
    memory: Memory, question: str, found: set[str]
) -> None:
    shown = {
        id
        for hit in memory.recall(question)
        for id in (hit.id, *(line.id for line in hit.lines))
    }

    assert shown & TEXTS.keys() == found


def test_a_compound_remembered_later_is_found_too() -> None:
    with Memory(":memory:") as memory:
        memory.remember("the router is in the hall")
        assert not memory.recall("wifi").hits

        memory.remember("Wi-Fi needs a new password", id="new")

        assert [hit.id for hit in memory.recall("wifi")] == ["new"]


@pytest.mark.parametrize("question", ["often", "island", "into"])
def test_two_small_words_are_no_compound(question: str) -> None:
    with Memory(":memory:") as memory:
        memory.remember("one of ten is land, went in to see")

        assert not memory.recall(question).hits
