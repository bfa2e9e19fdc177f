"""What holds for any conversation, whatever its form and however odd."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import get_args

import pytest
from domain.talks import same, talks
from hypothesis import given, strategies as st

from mnemosyned import (
    AutoPolicy,
    ContextManager,
    MemoryConsolidator,
    RoundsPolicy,
    TokenBudget,
    extract_facts,
    sendable,
)
from mnemosyned.conversation.archived import find_original_id, is_truncation_of
from mnemosyned.conversation.budget import MemoryPlace
from mnemosyned.conversation.compaction import CompactionPolicy
from mnemosyned.conversation.key_facts import parse_bullets, write_bullets
from mnemosyned.conversation.messages import (
    CharsCounter,
    FullCounter,
    Message,
    MessageCounter,
    group_messages,
    has_user_content,
    is_system,
    message_id,
)
from mnemosyned.conversation.summary_message import is_summary
from mnemosyned.text.token_counts import Chars4

FULL = FullCounter(Chars4())
LIMITS = st.sampled_from([0, 50, 400, 2_000, 100_000])
POLICIES: dict[str, Callable[[int], CompactionPolicy]] = {
    "facts": lambda limit: MemoryConsolidator(max_tokens=limit),
    "rounds": lambda limit: RoundsPolicy(limit, counter=FULL),
    "auto": lambda limit: AutoPolicy(limit, counter=FULL),
}
policies = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)


def orphans(messages: Sequence[Message]) -> set[str]:
    """Ids of the results without their calls; of a shortened one, the id of its original."""
    found = [messages[at] for at in group_messages(messages).orphans]
    return {find_original_id(one) or message_id(one) for one in found}


def originals(messages: Sequence[Message], given: Sequence[Message]) -> list[int]:
    """The positions of those that came through untouched."""
    at = {id(message): place for place, message in enumerate(given)}
    return [at[id(message)] for message in messages if id(message) in at]


# ------------------------------------------------------------------- compacting


@policies
@given(talk=talks(), limit=LIMITS)
def test_a_compaction_parts_nothing_counts_its_tokens_and_is_done_once(
    policy: Callable[[int], CompactionPolicy], talk: list[Message], limit: int
) -> None:
    before = deepcopy(talk)
    counter: MessageCounter = CharsCounter() if policy is POLICIES["facts"] else FULL

    done = policy(limit).compact(talk)
    again = policy(limit).compact(done.messages)

    assert talk == before
    assert orphans(done.messages) <= orphans(talk)
    kept = originals(done.messages, talk)
    assert kept == sorted(set(kept))
    gone = {message_id(talk[at]) for at in range(len(talk)) if at not in kept}
    summaries = {message_id(message) for message in talk if is_summary(message)}
    assert gone <= set(done.expand) | summaries
    assert done.tokens_after == sum(map(counter.message, done.messages))
    assert done.over_budget is (0 < limit < done.tokens_after)
    assert again.messages == done.messages
    assert not again.changed


@policies
@given(parts=st.lists(talks(size_max=6), min_size=2, max_size=4), limit=LIMITS)
def test_no_fact_is_lost_however_often_it_is_compacted(
    policy: Callable[[int], CompactionPolicy], parts: list[list[Message]], limit: int
) -> None:
    known: set[str] = set()
    messages: list[Message] = []
    for part in parts:
        done = policy(limit).compact([*messages, *part])
        messages = done.messages

        assert known <= set(done.facts)
        known = set(done.facts)


@given(talk=talks(), keep=st.integers(0, 6))
def test_the_newest_messages_stay_except_results_longer_than_the_window(
    talk: list[Message], keep: int
) -> None:
    live = [message for message in talk if not is_summary(message)]
    pinned = next((at for at, one in enumerate(talk) if not is_system(one)), len(talk))

    for policy in (
        MemoryConsolidator(keep_recent=keep),
        AutoPolicy(1, keep_recent=keep),
    ):
        done = policy.compact(talk)
        archived = {removed.id: removed.message for removed in done.archived}
        left = [
            archived.get(find_original_id(message), message)
            for message in done.messages
            if not is_summary(message)
        ]

        # Results that are alike have one id, so that another may be left for one of them.
        assert left[: min(pinned, len(left))] == talk[:pinned]
        assert keep == 0 or left[-keep:] == live[-keep:]


@given(talk=talks(), limit=LIMITS)
def test_rounds_keep_every_word_of_the_users(talk: list[Message], limit: int) -> None:
    def own(messages: Sequence[Message]) -> list[Message]:
        return [
            one for one in messages if has_user_content(one) and not is_summary(one)
        ]

    done = RoundsPolicy(limit, counter=FULL).compact(talk)

    for kept, said in zip(own(done.messages), own(talk), strict=True):
        # A giant result of a tool may stand beside the user's words, and is shortened.
        assert kept is said or is_truncation_of(kept, said)


@given(talk=talks())
def test_facts_are_read_off_their_bullets_as_they_were(talk: list[Message]) -> None:
    facts = extract_facts(talk)

    assert parse_bullets(write_bullets(facts).split("\n"))[0] == facts


# ------------------------------------------------------------------- assembling


@given(
    talk=talks(),
    total=st.sampled_from([0, 30, 300, 3_000, 50_000]),
    tail=st.integers(0, 6),
    memory=st.lists(st.sampled_from(["a memory", "m" * 900, ""]), max_size=3),
    compacting=st.sampled_from([None, *POLICIES.values()]),
    place=st.sampled_from(get_args(MemoryPlace)),
)
def test_a_context_holds_what_it_must_and_what_fits(
    *,
    talk: list[Message],
    total: int,
    tail: int,
    memory: list[str],
    compacting: Callable[[int], CompactionPolicy] | None,
    place: MemoryPlace,
) -> None:
    before = deepcopy(talk)
    budget = TokenBudget(total, 0, 0, fresh_tail_count=tail)
    manager = ContextManager(
        budget,
        counter=FULL,
        consolidator=compacting(total) if compacting else None,
        memory_place=place,
    )

    context = manager.build_messages("sys", "new", talk, memory_results=memory)

    assert talk == before
    assert context.messages[-1] == {"role": "user", "content": "new"}
    assert orphans(context.messages) <= orphans([*talk, context.messages[-1]])
    kept = originals(context.messages, talk)
    assert kept == sorted(set(kept)) == list(context.kept)
    assert set(kept).isdisjoint(context.dropped)
    assert len(kept) + len(context.dropped) == len(talk)
    window = FULL.text(context.system) + sum(map(FULL.message, context.messages))
    assert window <= total + 8 or context.over_budget  # the joints of the system prompt
    if compacting is None:
        assert tail == 0 or same([talk[at] for at in kept[-tail:]], talk[-tail:])
    again = manager.build_messages("sys", "new", talk, memory_results=memory)
    assert again == context


@given(talk=talks())
def test_sendable_messages_have_no_metadata(talk: list[Message]) -> None:
    done = MemoryConsolidator(keep_recent=1).compact(talk)

    for message in sendable(done.messages, alternate=True):
        assert "metadata" not in message
