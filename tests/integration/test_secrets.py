"""Secrets: kept for their owner, and read by nobody else; masked or refused where it is set."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.fakes import FakeClock, FakeSummarizer, files_containing
from support.leftovers import left_of
from support.settings import change
from support.thorough import thorough

from mnemosyned.assembly.build import open_memory
from mnemosyned.assembly.embedded import Memory as OpenedMemory
from mnemosyned.cli.output.show import render
from mnemosyned.config.loading import load_config
from mnemosyned.config.settings import SettingsInForce
from mnemosyned.errors import SecretRefused
from mnemosyned.memory.consolidation import Trigger
from mnemosyned.memory.masking import SecretRule
from mnemosyned.memory.values import Acknowledged, Episode
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.summary.extract import ExtractiveSummarizer
from mnemosyned.text.details import DetailKind
from mnemosyned.verbs.memories import Expand, Get, Recall, Remember, RememberMany
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.retention import Forget
from mnemosyned.verbs.upkeep import Log

SECRET = "Zq7xK9vB2mT4"  # noqa: S105 made up for these tests
SAID = f"Decision: the cellar door's password: {SECRET}, from 2026-03-17 on."


@pytest.fixture
def use(settings: SettingsInForce) -> Callable[[SecretRule], None]:
    """Put a rule for secrets in force."""
    return lambda rule: change(settings, {"secrets": rule})


def fill(service: MemoryService, clock: FakeClock) -> list[Acknowledged]:
    texts = [
        SAID,
        f"{SECRET} opened it at once",
        "The stew needs 40 minutes.",
        "It was good.",
    ]
    answers = [
        service.call(
            Remember(text, id=f"m{at}", metadata={"token": SECRET} if at == 3 else {})
        )
        for at, text in enumerate(texts)
    ]
    clock.advance(hours=20)
    return answers


def slept(service: MemoryService, cycle: SleepCycle) -> Episode:
    (group,) = cycle.run(CycleRequest(trigger=Trigger.EXPLICIT)).groups
    episode = service.call(Get(group.episodes[0], reveal=True)).episode
    assert episode
    return episode


# ---------------------------------------------------------------------- keep


def test_what_is_kept_is_said_to_be_kept(
    service: MemoryService, clock: FakeClock
) -> None:
    assert [answer.secrets for answer in fill(service, clock)] == [
        "kept",
        "",
        "",
        "kept",
    ]


@pytest.mark.parametrize("model_free", [True, False])
def test_no_summary_preview_or_prompt_holds_a_secret(
    service: MemoryService,
    cycle: SleepCycle,
    clock: FakeClock,
    summarizer: FakeSummarizer,
    model_free: bool,  # noqa: FBT001 a parameter of the test
) -> None:
    prompts: list[str] = []
    summarizer.meanwhile = lambda given: prompts.extend(
        memory.content for memory in given
    )
    if model_free:
        cycle.lease.replace(ExtractiveSummarizer())
    fill(service, clock)

    episode = slept(service, cycle)

    assert SECRET not in episode.content
    assert "[secret:password]" in episode.content
    assert not any(SECRET in row.summary_preview for row in service.call(Log()).rows)
    assert not any(SECRET in prompt for prompt in prompts)


def test_a_secret_promoted_word_for_word_is_masked_in_the_episode_alone(
    service: MemoryService, cycle: SleepCycle, clock: FakeClock
) -> None:
    service.call(Remember(SAID, id="m0"))
    clock.advance(hours=20)

    episode = slept(service, cycle)

    assert SECRET not in episode.content
    assert service.call(Log()).rows[0].chars_before == len(SAID)
    memory = service.call(Get("m0", reveal=True)).memory
    assert memory
    assert memory.content == SAID


def test_secrets_are_masked_in_every_answer_but_to_who_asks(
    service: MemoryService, cycle: SleepCycle, clock: FakeClock
) -> None:
    fill(service, clock)
    fresh: list[object] = [
        service.call(Recall("cellar password")),
        service.call(Get("m0")),
    ]
    episode = slept(service, cycle).id

    masked = [*fresh, service.call(Recall("cellar password")), service.call(Get("m3"))]
    masked += [service.call(Get(episode)), service.call(Expand(episode))]
    revealed: list[object] = [service.call(Recall("cellar password", reveal=True))]
    revealed += [
        service.call(Get("m3", reveal=True)),
        service.call(Expand(episode, reveal=True)),
    ]

    assert [SECRET in repr(answer) for answer in masked] == [False] * 6
    assert [SECRET in repr(answer) for answer in revealed] == [True] * 3


def test_details_are_shown_with_their_memory_and_the_secret_masked(
    service: MemoryService, cycle: SleepCycle, clock: FakeClock
) -> None:
    fill(service, clock)
    episode = slept(service, cycle).id

    shown = service.call(Expand(episode)).episode.details

    assert {(detail.kind, detail.value, detail.memory) for detail in shown} == {
        (DetailKind.PASSWORD, "[secret:password]", "m0"),
        (DetailKind.DATE, "2026-03-17", "m0"),
        (DetailKind.DURATION, "40 minutes", "m2"),
        (DetailKind.IDENTIFIER, "[secret:password]", "m1"),
    }


def test_forgetting_one_memory_does_not_let_its_secret_out_in_the_rest(
    service: MemoryService, cycle: SleepCycle, clock: FakeClock
) -> None:
    fill(service, clock)
    episode = slept(service, cycle).id

    service.call(Forget("m0"))

    found = service.call(Get(episode, reveal=True)).episode
    assert found
    assert SECRET not in found.content
    assert "m0" not in {detail.memory for detail in found.details}


def test_a_secret_forgotten_is_gone_from_the_disk(
    service: MemoryService, cycle: SleepCycle, clock: FakeClock, store: SqliteStore
) -> None:
    fill(service, clock)
    slept(service, cycle)

    for id in ("m0", "m1", "m3"):
        service.call(Forget(id))

    assert left_of(store, SECRET) == []


def test_no_log_line_holds_a_secret(
    service: MemoryService,
    cycle: SleepCycle,
    clock: FakeClock,
    capfd: pytest.CaptureFixture[str],
) -> None:
    fill(service, clock)
    slept(service, cycle)

    told = capfd.readouterr()

    assert SECRET not in told.out + told.err


# --------------------------------------------------------------- mask, refuse


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


def test_the_same_masked_memory_again_is_known(
    service: MemoryService, use: Callable[[SecretRule], None]
) -> None:
    use("mask")

    stored = [service.call(Remember(SAID, id="m")).stored for _ in range(2)]

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
    service: MemoryService,
    use: Callable[[SecretRule], None],
    request_: Request[Any],
    field: str,
) -> None:
    use("refuse")

    with pytest.raises(SecretRefused) as refused:
        service.call(request_)

    assert (refused.value.code, refused.value.field) == ("secret_refused", field)
    assert SECRET not in str(refused.value)
    assert "password" in str(refused.value) or "metadata" in str(refused.value)
    assert service.call(Recall("tea cellar")).hits == []


def test_the_setting_reaches_the_service(tmp_path: Path) -> None:
    config = load_config(
        environ={},
        overrides={
            "secrets": "refuse",
            "database": str(tmp_path / "memory.db"),
            "embedding.encoder": "none",
        },
    )

    with open_memory(config) as memory, pytest.raises(SecretRefused):
        memory.service.call(Remember(SAID))


def test_a_person_reads_the_details_by_kind(
    service: MemoryService, cycle: SleepCycle, clock: FakeClock
) -> None:
    fill(service, clock)
    shown = render(service.call(Expand(slept(service, cycle).id)))

    lines = [line.split() for line in shown.partition("Exact details:")[2].splitlines()]

    assert ["date", "2026-03-17"] in lines
    assert ["duration", "40", "minutes"] in lines
    assert ["password", "[secret:password]"] in lines
    assert SECRET not in shown


# ---------------------------------------------- as people and programs write them

KINDS = {
    "password": ("My password for the bank is Brn4tt!Wv, do not lose it.", "Brn4tt!Wv"),
    "access_code": ("The alarm code at the office is 258071#, it beeps.", "258071"),
    "login_code": ("Recovery codes: 7f3a9-b2c41, d09e4-81fa6", "d09e4-81fa6"),
    "seed_phrase": (
        "The wallet: army van defense carry jealous true garbage claim echo media make crunch",
        "jealous",
    ),
    "cookie": (
        "Cookie: sessionid=38afes7a8b2c4d6e8f0a; theme=dark",
        "38afes7a8b2c4d6e8f0a",
    ),
    "signature": (
        "https://a.example/x?se=2024&sig=u7Wq2ZkP9mT4vB8xR1",
        "u7Wq2ZkP9mT4vB8xR1",
    ),
    "card_number": ("My Visa is 4111 1111 1111 1111, exp 09/27", "4111 1111 1111 1111"),
    "iban": ("Wire it to GB29 NWBK 6016 1331 9268 19 by Friday", "6016 1331"),
    "ssn": ("My SSN is 219-09-9999.", "219-09-9999"),
}


@pytest.mark.parametrize(
    "kind", ["password", *thorough(*sorted(KINDS.keys() - {"password"}))]
)
def test_each_kind_is_kept_masked_or_refused_as_set(
    tmp_path: Path, clock: FakeClock, kind: str
) -> None:
    text, secret = KINDS[kind]

    with OpenedMemory(tmp_path / "keep.db", clock=clock, secrets="keep") as memory:
        kept = memory.remember(text, id="m")
        read = memory.get("m").memory
        memory.sleep(force=True)
        own = memory.get("m", reveal=True).memory
    with OpenedMemory(
        tmp_path / "mask" / "mask.db", clock=clock, secrets="mask"
    ) as memory:
        masked = memory.remember(text)
        memory.sleep(force=True)
        found = files_containing(tmp_path / "mask", secret)
    with (
        OpenedMemory(
            tmp_path / "refuse" / "refuse.db", clock=clock, secrets="refuse"
        ) as memory,
        pytest.raises(SecretRefused, match=kind),
    ):
        memory.remember(text)

    assert (kept.secrets, masked.secrets) == ("kept", "masked")
    assert read
    assert f"[secret:{kind}]" in read.content
    assert own
    assert own.content == text
    assert found == []
    assert files_containing(tmp_path / "refuse", secret) == []
