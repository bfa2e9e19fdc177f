"""What an owner may use: counted, refused with a time, and free again as time passes."""

import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from support.cases import each_case
from support.fake_models import FakeTextModel

from mnemosyned.config.loading import load_config
from mnemosyned.config.settings import OwnersConfig
from mnemosyned.daemon.http.protocol import error_response
from mnemosyned.errors import ConfigInvalid, InvalidRequest, LimitReached
from mnemosyned.models.sharing import ModelTurns, OwnerModel
from mnemosyned.search.vectors.owners import OwnerTurns
from mnemosyned.service.owners import (
    FULL_RETRY_S,
    REFUSAL_REST_S,
    OwnerLimiter,
)
from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.conversation import Compact, Learn
from mnemosyned.verbs.memories import (
    EditMemory,
    Pin,
    Remember,
    RememberMany,
    Tag,
    Untag,
)
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.retention import Forget

ANNA, BERT = 2, 3
NO_LIMITS: dict[str, Any] = dict.fromkeys(
    ("requests_per_minute", "writes_per_minute", "bytes_per_day", "memories_max")
)


class Owners:
    """Settings and owners that a test changes, and a clock."""

    def __init__(self) -> None:
        self.config = OwnersConfig(**NO_LIMITS)
        self.kept = {ANNA: 0, BERT: 0}
        self.asked = 0
        self.seconds = 100.0
        self.limiter = OwnerLimiter(
            lambda: self.config, self.describe, now=lambda: self.seconds
        )

    def describe(self, owner: int) -> tuple[str, int]:
        self.asked += 1
        return {ANNA: "anna", BERT: "bert"}[owner], self.kept[owner]

    def limit(self, **limits: int) -> None:
        self.config = msgspec.structs.replace(self.config, **limits)

    def write(self, owner: int, memories: int = 1, size: int = 10) -> None:
        self.limiter.use_write(owner, memories=memories, size=size)


@pytest.fixture
def owners() -> Owners:
    return Owners()


@pytest.fixture(autouse=True)
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    rests: list[float] = []
    monkeypatch.setattr(time, "sleep", rests.append)
    return rests


def refusal(call: Callable[[], object]) -> LimitReached:
    with pytest.raises(LimitReached) as refused:
        call()
    return refused.value


def test_requests_are_refused_until_one_is_free_again(
    owners: Owners, rests: list[float]
) -> None:
    owners.limit(requests_per_minute=30)
    for _ in range(30):
        owners.limiter.use_request(ANNA)

    refused = refusal(lambda: owners.limiter.use_request(ANNA))
    owners.limiter.use_request(BERT)

    assert rests == [REFUSAL_REST_S]  # whoever sends it again at once waits too
    assert refused.retry_after_s == 2
    assert refused.message == (
        "this owner's limit of 30 requests a minute is used up (30 used); some is free again in "
        "2 s: send this again then"
    )
    response = error_response(refused)
    assert (response.status, ("Retry-After", "2") in response.headers) == (429, True)
    owners.seconds += 2
    owners.limiter.use_request(ANNA)
    assert refusal(lambda: owners.limiter.use_request(ANNA)).retry_after_s == 2


@pytest.mark.parametrize(
    ("limit", "written", "retry_s"),
    [
        ({"writes_per_minute": 60}, {"memories": 90}, 31),
        ({"bytes_per_day": 86_400}, {"size": 86_400 + 99}, 100),
    ],
)
def test_a_batch_may_exceed_the_limit_once_and_is_waited_for(
    owners: Owners, limit: dict[str, int], written: dict[str, int], retry_s: int
) -> None:
    owners.limit(**limit)
    owners.write(ANNA, **written)

    assert refusal(lambda: owners.write(ANNA)).retry_after_s == retry_s
    if "bytes_per_day" in limit:
        owners.limiter.use_write(ANNA, memories=0, size=0)  # such as a tag
    owners.seconds += retry_s
    owners.write(ANNA)


def test_memories_are_counted_by_the_database_and_since_it_was_asked(
    owners: Owners,
) -> None:
    owners.limit(memories_max=100)
    owners.kept[ANNA] = 95
    owners.write(ANNA, memories=4)
    owners.kept[ANNA] = 99
    owners.seconds += 2

    refused = refusal(lambda: owners.write(ANNA, memories=2))

    assert refused.retry_after_s == FULL_RETRY_S
    assert "keeps 99 memories of the 100" in refused.message
    owners.write(ANNA)
    owners.kept[ANNA] = 20  # 80 were forgotten
    owners.seconds += 2
    owners.write(ANNA, memories=80)


def test_the_database_is_asked_once_a_minute_and_without_need_never(
    owners: Owners,
) -> None:
    for _ in range(5):
        owners.write(ANNA)
        owners.limiter.use_request(ANNA)
    assert owners.asked == 0

    owners.limit(memories_max=100)
    for _ in range(5):
        owners.write(ANNA)
    assert owners.asked == 1


def test_streams_are_refused_until_one_ends(owners: Owners) -> None:
    owners.limit(streams_max=2)
    owners.limiter.begin_stream(ANNA)
    owners.limiter.begin_stream(ANNA)

    assert "streams" in refusal(lambda: owners.limiter.begin_stream(ANNA)).message
    owners.limiter.begin_stream(BERT)
    owners.limiter.end_stream(ANNA)
    owners.limiter.begin_stream(ANNA)


def test_an_owner_may_have_limits_of_its_own(owners: Owners) -> None:
    owners.limit(requests_per_minute=1, streams_max=1)
    own: dict[str, int | None] = {"requests_per_minute": 3, "streams_max": None}
    owners.config = msgspec.structs.replace(
        owners.config, limits_by_owner={"anna": own}
    )
    for _ in range(3):
        owners.limiter.use_request(ANNA)
        owners.limiter.begin_stream(ANNA)

    refusal(lambda: owners.limiter.use_request(ANNA))
    owners.limiter.use_request(BERT)
    refusal(lambda: owners.limiter.use_request(BERT))


def test_limits_that_are_set_are_listed_with_what_is_used(owners: Owners) -> None:
    owners.limit(requests_per_minute=60, memories_max=100, writes_per_minute=10)
    owners.kept[ANNA] = 7
    for _ in range(3):
        owners.limiter.use_request(ANNA)
    owners.limiter.use_write(ANNA, memories=0, size=0)
    owners.limiter.use_write(ANNA, memories=19, size=5)

    uses = {
        use.name: (use.used, use.limit, use.free_in_s)
        for use in owners.limiter.list_uses(ANNA)
    }

    assert uses == {
        "requests_per_minute": (3, 60, 0.0),
        "writes_per_minute": (20, 10, 66.0),
        "memories_max": (26, 100, 0.0),
    }


def test_the_model_is_asked_no_more_than_its_owner_may_use(owners: Owners) -> None:
    class Model(FakeTextModel):
        def complete(self, *_: object, **__: object) -> str:
            return "said"

    owners.limit(model_s_per_minute=10)
    model = OwnerModel(
        ModelTurns([Model()], wait_s=1.0), ANNA, allowance=owners.limiter.model
    )
    assert model.complete([], max_tokens=9, temperature=0.0) == "said"
    owners.limiter.model.use(ANNA, 10)

    refused = refusal(lambda: model.complete([], max_tokens=9, temperature=0.0))

    assert "seconds of the language model" in refused.message
    assert refused.retry_after_s in (6, 7)


def test_an_owner_whose_turn_comes_late_keeps_no_other_waiting() -> None:
    turns = OwnerTurns()
    turns.add(ANNA, after_s=600)
    turns.add(BERT, after_s=1e-9)

    assert turns.next_owner() == BERT
    assert turns.next_owner() is None
    assert 0 < (turns.next_s() or 0) <= 600


@each_case(
    ("limits", "problem"),
    [
        ('{"anna": {"requests": 5}}', "requests is no limit"),
        ('{"anna": {"requests_per_minute": 0}}', "at least 1"),
        ('{"anna": 5}', "object"),
        ("anna", "object"),
    ],
)
def test_limits_of_an_owner_that_cannot_be_used_are_refused(
    limits: str, problem: str
) -> None:
    environ = {"MNEMOSYNE_OWNERS_LIMITS_BY_OWNER": limits}
    with pytest.raises(ConfigInvalid, match=problem):
        load_config(environ=environ)


def test_a_request_counts_by_the_memories_that_it_has(owners: Owners) -> None:
    owners.limit(writes_per_minute=100, bytes_per_day=10_000)
    for request, used in (
        (Forget(id="a"), [0, 0]),
        (RememberMany([Remember("said")] * 9, dry_run=True), [0, 0]),
        (Pin("a", dry_run=True), [0, 0]),
        (Remember("süß"), [1, 5]),
        (RememberMany([Remember("12345678")] * 9), [10, 77]),
        (Pin("a"), [11, 77]),
        (Remember("12", metadata={"a": "34"}), [12, 89]),
        (EditMemory(id="a", text="1" * 9_889), [13, 9_978]),
        (Tag("a", tags=["b"]), [14, 9_983]),
        (Untag("a", tags=["b"]), [15, 9_983]),
        (Remember("1", tags=["b"]), [16, 9_989]),
        (Learn("Say 1234567"), [17, 10_000]),
    ):
        owners.limiter.admit(ANNA, request)
        assert [use.used for use in owners.limiter.list_uses(ANNA)] == used
    refusal(lambda: owners.limiter.admit(ANNA, EditMemory(id="a", text="1")))
    owners.limiter.admit(ANNA, EditMemory(id="a", session="x"))


def test_a_compaction_counts_by_the_messages_that_it_stores(
    owners: Owners, service: MemoryService
) -> None:
    owners.limit(writes_per_minute=1_000, bytes_per_day=10_000, memories_max=60)
    service.limits = owners.limiter
    service.events.owner = ANNA
    messages = [{"role": "user", "content": f"{n:04} süß"} for n in range(50)]
    compact = Compact(messages, force=True, policy="facts", keep_recent=10)

    taken = len(service.call(compact).archived)
    used = [use.used for use in owners.limiter.list_uses(ANNA)]
    service.call(compact)  # again, of what is known
    again = [use.used for use in owners.limiter.list_uses(ANNA)]

    assert taken == 40
    assert used[:2] == [40, 400]
    assert again[:2] == [41, 400]
    refusal(lambda: service.call(RememberMany([Remember("said")] * 21)))


def test_a_change_of_many_memories_counts_as_many_writes(
    owners: Owners, service: MemoryService
) -> None:
    service.call(RememberMany([Remember(f"said {n}", session="s") for n in range(9)]))
    owners.limit(writes_per_minute=1_000)
    service.limits = owners.limiter
    service.events.owner = ANNA
    used = []

    changes: tuple[Request[Any], ...] = (
        Tag(tags=["a"], session="s", dry_run=True),
        Tag(tags=["a"], session="s"),
        Pin(session="s"),
        EditMemory(of_session=["s"], source="talks"),
        Tag(tags=["a"], session="nothing"),
    )
    for change in changes:
        service.call(change)
        used.append(next(iter(owners.limiter.list_uses(ANNA))).used)

    assert used == [0, 9, 18, 27, 28]


def test_each_line_of_an_export_counts_as_a_memory(
    owners: Owners, service: MemoryService
) -> None:
    owners.limit(writes_per_minute=100, bytes_per_day=10_000)
    service.limits = owners.limiter
    service.events.owner = ANNA

    with pytest.raises(InvalidRequest):
        service.restore_lines(b"{}\n" * 4)

    assert [use.used for use in owners.limiter.list_uses(ANNA)] == [4, 12]
