from __future__ import annotations

from collections.abc import Sequence

import pytest
from bench.locomo import CATEGORIES, HALVES, Asked, Conversation, Results, scores
from bench.locomo_peer import Texts

SAID = ["The kite is red and torn.", "Hello!", "Then we shall mend the kite on Sunday."]


def conversation(number: int) -> Conversation:
    turns = [
        {"dia_id": f"D1:{place}", "speaker": "Ana", "text": words}
        for place, words in enumerate(SAID, start=1)
    ]
    return Conversation(
        sample_id=f"talk-{number}",
        conversation={
            "session_1": turns,
            "session_1_date_time": "1:56 pm on 8 May, 2023",
        },
        qa=[
            {"question": "Which kite?", "category": 4, "evidence": ["D1:1"]},
            {"question": "What of it?", "category": 1, "evidence": ["D1:1; D:1:3"]},
            {"question": "Who is not there?", "category": 5, "evidence": ["D1:2"]},
            {"question": "Where?", "category": 4, "evidence": ["D9:9"]},
        ],
    )


def test_questions_without_evidence_or_of_another_kind_are_not_asked() -> None:
    asked = list(conversation(0).questions())

    assert [one.text for one in asked] == ["Which kite?", "What of it?"]
    assert asked[1].evidence == {"talk-0/D1:1", "talk-0/D1:3"}


def test_a_score_counts_the_evidence_among_the_first_results_of_each_half() -> None:
    def search(questions: Sequence[Asked], limit: int) -> list[Results]:
        """In the first half the first line is found late, in the second at once."""
        noise: list[frozenset[str]] = [frozenset()] * 6
        late = {f"talk-{number}" for number in range(5)}
        return [
            [
                *(noise if asked.sample in late else []),
                frozenset([f"{asked.sample}/D1:1"]),
                *([frozenset([f"{asked.sample}/D1:3"])] if limit > 10 else []),
            ]
            for asked in questions
        ]

    kinds = scores(search, [conversation(number) for number in range(10)])

    first, second = (kinds[half] for half in HALVES)
    assert (first.recall_5, first.recall_10, first.recall_20) == (0, 0.75, 1)
    assert (second.recall_5, second.recall_10, second.recall_20) == (0.75, 0.75, 1)
    assert kinds[CATEGORIES[1]].recall_10 == pytest.approx(0.5)
    assert kinds["all"].hit_10 == 1
    assert kinds["all"].shown == 1


def test_a_text_of_the_peer_counts_for_the_turn_it_is_or_for_all_it_shows() -> None:
    texts = Texts([conversation(0)])

    assert texts.turns("Ana: Hello!") == {"talk-0/D1:2"}
    assert texts.turns(
        "[talk] Ana: Kite is red+torn | we shall mend the kite:on Sunday"
    ) == {
        "talk-0/D1:1",
        "talk-0/D1:3",
    }
    assert texts.turns("nothing of the kind") == frozenset()
