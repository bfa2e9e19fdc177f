"""The bench that scores a model, on a conversation small enough to be read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from bench.model_summaries import first_sessions, score, searched
from bench.report import Report
from bench.retention import Conversation, content_words, retention
from support.endpoints import PROGRAMS, Behavior, says, serving
from support.gguf import canned_model

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.extract import ExtractiveSummarizer

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)
SAID = (
    "Decision: we buy the Zebra ZC300 from Kessler, as soon as possible, for 1,890 euros.",
    "We looked at three vendors for the new badge printer this morning.",
    "The other two were slower, and one of them needed a driver nobody could find.",
    "Ines will pick it up on 14 April; the invoice goes to finance@example.com.",
    "Then we talked about lunch for a while and about the weather, which was fine.",
)
ASKED = (("Kessler", 1), ("14 April", 2), ("a driver", 2))
CONVERSATION = Conversation(
    sessions={
        number: [
            MemoryRecord(
                id=f"{number}{at}",
                content=text,
                created_at=NOON + timedelta(minutes=at),
            )
            for at, text in enumerate(SAID)
        ]
        for number in (1, 2)
    },
    questions=tuple((content_words(answer), frozenset((at,))) for answer, at in ASKED),
)


@pytest.fixture
def report() -> Report:
    return Report("test")


def by_rule() -> float:
    return retention(
        [CONVERSATION],
        lambda session: searched(ExtractiveSummarizer().summarize(session)),
    )


@pytest.mark.parametrize(
    ("behavior", "accepted", "by_rule_count"),
    [
        pytest.param(PROGRAMS["begins"], 2, 0, id="useful"),
        pytest.param(PROGRAMS["nothing"], 0, 2, id="of no use"),
        pytest.param(says("It cost 77 dollars in Quito."), 0, 2, id="invented"),
    ],
)
def test_a_model_is_scored_beside_the_rules_and_costs_nothing_that_they_keep(
    report: Report, behavior: Behavior, accepted: int, by_rule_count: int
) -> None:
    with serving(behavior) as endpoint:
        score(report, "model", [CONVERSATION], settings={"llm.endpoint": endpoint.url})

    names = ("accepted", "rejected", "by_rule", "retention", "retention_by_rule")
    found, rejected, by_rules, kept, kept_by_rule = (
        report.figures[f"model/{name}"] for name in names
    )
    assert (found, rejected, by_rules) == (accepted, by_rule_count, by_rule_count)
    assert kept == kept_by_rule if by_rule_count else kept >= kept_by_rule
    assert kept_by_rule == pytest.approx(by_rule(), abs=1e-3)
    assert report.missed == 0


@pytest.mark.llm
def test_a_model_in_a_file_is_scored_too(report: Report, tmp_path: Path) -> None:
    says_this = "Decision: we buy the Zebra ZC300 from Kessler for 1,890 euros"
    model = canned_model(tmp_path / "canned.gguf", says_this, context=4096)

    score(report, "model", [CONVERSATION], settings={"llm.model_path": str(model)})

    assert (report.figures["model/accepted"], report.figures["model/by_rule"]) == (2, 0)
    assert report.missed == 0


def test_the_first_sessions_come_with_the_questions_they_hold_whole() -> None:
    (first,) = first_sessions([CONVERSATION, CONVERSATION], 1)

    assert list(first.sessions) == [1]
    assert len(first.questions) == 1
    assert len(first_sessions([CONVERSATION, CONVERSATION], None)) == 2


def test_settings_without_a_model_are_nothing_to_score(report: Report) -> None:
    with pytest.raises(SystemExit, match="no model is configured"):
        score(report, "model", [CONVERSATION], settings={})
