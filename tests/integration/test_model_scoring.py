"""The bench that scores a model, on a conversation small enough to be read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from bench.model_summaries import first_sessions, score, searched
from bench.report import Report
from bench.retention import Conversation, content_words, retention
from support.endpoints import PROGRAMS, process, says, serving
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


def test_a_model_behind_an_endpoint_is_scored_beside_the_rules(report: Report) -> None:
    with process("--say", "begins") as (endpoint, _):
        score(report, "model", [CONVERSATION], settings={"llm.endpoint": endpoint.url})

    assert (report.figures["model/accepted"], report.figures["model/by_rule"]) == (2, 0)
    assert (
        report.figures["model/retention"] >= report.figures["model/retention_by_rule"]
    )
    assert report.figures["model/retention_by_rule"] == pytest.approx(
        by_rule(), abs=1e-3
    )
    assert report.missed == 0


@pytest.mark.parametrize(
    "of_no_use", [PROGRAMS["nothing"], says("It cost 77 dollars in Quito.")]
)
def test_a_model_of_no_use_costs_nothing_that_the_rules_keep(
    report: Report, of_no_use: Callable[..., None]
) -> None:
    with serving(of_no_use) as endpoint:
        score(report, "model", [CONVERSATION], settings={"llm.endpoint": endpoint.url})

    assert (report.figures["model/rejected"], report.figures["model/by_rule"]) == (2, 2)
    assert (
        report.figures["model/retention"] == report.figures["model/retention_by_rule"]
    )
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
