"""Secrets: kept for their owner, and read by nobody else; masked or refused where it is set."""

from pathlib import Path
from typing import Any

import pytest
from support.fakes import FakeClock, files_containing
from support.services import Lab

from mnemosyned.assembly.embedded import Memory as OpenedMemory
from mnemosyned.cli.output.show import render
from mnemosyned.errors import SecretRefused
from mnemosyned.memory.values import Acknowledged, Episode
from mnemosyned.summary.extract import ExtractiveSummarizer
from mnemosyned.text.details import DetailKind
from mnemosyned.verbs.memories import Remember, RememberMany
from mnemosyned.verbs.request import Request

SECRET = "Zq7xK9vB2mT4"  # noqa: S105 made up for these tests
SAID = f"Decision: the cellar door's password: {SECRET}, from 2026-03-17 on."


def fill(lab: Lab) -> list[Acknowledged]:
    texts = [
        SAID,
        f"{SECRET} opened it at once",
        "The stew needs 40 minutes.",
        "It was good.",
    ]
    answers = [
        lab.remember(text, id=f"m{at}", metadata={"token": SECRET} if at == 3 else {})
        for at, text in enumerate(texts)
    ]
    lab.clock.advance(hours=20)
    return answers


def slept(lab: Lab) -> Episode:
    (group,) = lab.run_cycle().groups
    episode = lab.get(group.episodes[0], reveal=True).episode
    assert episode
    return episode


@pytest.mark.parametrize("model_free", [True, False])
def test_no_summary_preview_prompt_or_log_line_holds_a_secret_that_is_kept(
    lab: Lab, capfd: pytest.CaptureFixture[str], *, model_free: bool
) -> None:
    prompts: list[str] = []
    lab.summarizer.meanwhile = lambda given: prompts.extend(
        memory.content for memory in given
    )
    if model_free:
        lab.cycle.lease.replace(ExtractiveSummarizer())
    answers = fill(lab)

    episode = slept(lab)

    assert [answer.secrets for answer in answers] == ["kept", "", "", "kept"]
    assert SECRET not in episode.content
    assert "[secret:password]" in episode.content
    assert not any(SECRET in row.summary_preview for row in lab.log().rows)
    assert not any(SECRET in prompt for prompt in prompts)
    logged = capfd.readouterr()
    assert SECRET not in logged.out + logged.err


def test_a_secret_promoted_verbatim_is_masked_in_the_episode_alone(lab: Lab) -> None:
    lab.remember(SAID, id="m0")
    lab.clock.advance(hours=20)

    episode = slept(lab)

    assert SECRET not in episode.content
    assert lab.log().rows[0].chars_before == len(SAID)
    memory = lab.get("m0", reveal=True).memory
    assert memory
    assert memory.content == SAID


def test_secrets_are_masked_in_every_answer_but_to_who_asks(lab: Lab) -> None:
    fill(lab)
    fresh: list[object] = [lab.recall("cellar password"), lab.get("m0")]
    episode = slept(lab).id

    masked = [*fresh, lab.recall("cellar password"), lab.get("m3")]
    masked += [lab.get(episode), lab.expand(episode)]
    revealed: list[object] = [lab.recall("cellar password", reveal=True)]
    revealed += [lab.get("m3", reveal=True), lab.expand(episode, reveal=True)]

    assert [SECRET in repr(answer) for answer in masked] == [False] * 6
    assert [SECRET in repr(answer) for answer in revealed] == [True] * 3


def test_a_secret_is_masked_in_the_memories_shown_with_the_one_that_names_it(
    lab: Lab,
) -> None:
    fill(lab)

    shown: list[object] = [
        lab.recall("cellar opened"),
        lab.list(),
        lab.forget(session="default", dry_run=True),
    ]

    slept(lab)
    shown += [lab.recall("cellar opened"), lab.list(), lab.get("m1")]

    assert [SECRET in repr(answer) for answer in shown] == [False] * 6
    assert SECRET in repr(lab.list(reveal=True))


def test_an_edit_may_name_the_words_that_were_shown_masked(lab: Lab) -> None:
    fill(lab)
    slept(lab)
    shown = lab.get("m1").memory
    assert shown

    lab.edit("m1", text="The new key opened it at once", if_text=shown.content)

    assert lab.memory("m1").content == "The new key opened it at once"


def test_details_are_shown_with_their_memory_and_the_secret_masked(lab: Lab) -> None:
    fill(lab)
    shown = lab.expand(slept(lab).id)

    details = shown.episode.details
    assert {(detail.kind, detail.value, detail.memory) for detail in details} == {
        (DetailKind.PASSWORD, "[secret:password]", "m0"),
        (DetailKind.DATE, "2026-03-17", "m0"),
        (DetailKind.DURATION, "40 minutes", "m2"),
        (DetailKind.IDENTIFIER, "[secret:password]", "m1"),
    }
    printed = render(shown)
    exact = printed.partition("Exact values:")[2]
    lines = [line.split() for line in exact.splitlines()]
    assert ["date", "2026-03-17"] in lines
    assert ["duration", "40", "minutes"] in lines
    assert ["password", "[secret:password]"] in lines
    assert SECRET not in printed


def test_masked_secrets_are_in_no_file_at_all(tmp_path: Path, clock: FakeClock) -> None:
    with OpenedMemory(tmp_path / "memory.db", clock=clock, secrets="mask") as memory:
        told = memory.remember(SAID, metadata={"api_token": "b7Xk29fkdlsK", "n": 1})
        for note in ("Stir the stew.", "Salt comes last.", "It was good."):
            memory.remember(note)
        memory.sleep(force=True)
        (hit,) = memory.recall("cellar", reveal=True).hits

        assert told.secrets == "masked"
        assert "password: [secret:password], from" in hit.lines[0].content
        assert files_containing(tmp_path, SECRET, "b7Xk29fkdlsK") == []


def test_the_same_masked_memory_again_is_known(lab: Lab) -> None:
    lab.change({"secrets": "mask"})

    stored = [lab.remember(SAID, id="m").stored for _ in range(2)]

    assert stored == [True, False]


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (Remember(SAID), "content"),
        (Remember("tea", metadata={"deep": [{"password": SECRET}]}), "metadata"),
        (RememberMany([Remember("tea"), Remember(SAID)]), "memories[1].content"),
        (
            RememberMany([Remember("tea"), Remember(SAID)], dry_run=True),
            "memories[1].content",
        ),
    ],
)
def test_a_secret_is_refused_by_kind_and_never_named(
    lab: Lab, request_: Request[Any], field: str
) -> None:
    lab.change({"secrets": "refuse"})

    with pytest.raises(SecretRefused) as refused:
        lab.call(request_)

    assert (refused.value.code, refused.value.field) == ("secret_refused", field)
    assert SECRET not in str(refused.value)
    assert "password" in str(refused.value) or "metadata" in str(refused.value)
    assert lab.recall("tea cellar").hits == []
