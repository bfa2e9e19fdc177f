"""What every `MemoryStore` promises of what is forgotten with a grace time."""

from datetime import timedelta

from support.fakes import NOON, memory

from mnemosyned.memory.exchange import RecoverableRecord
from mnemosyned.memory.forgetting import Grace
from mnemosyned.memory.ports import Draft, MemoryStore
from mnemosyned.memory.values import Learning, LearningKind


def told(name: str, text: str, *, minutes: int) -> Draft:
    learning = Learning(
        id=f"l-{name}",
        kind=LearningKind.NAME,
        text=text,
        session="default",
        source=None,
        memory=name,
        created_at=NOON + timedelta(minutes=minutes),
    )
    return Draft(memory(name, text), learnings=(learning,))


def test_what_one_call_forgets_is_kept_as_it_was_before_the_call(
    store: MemoryStore,
) -> None:
    store.memories.remember([told("older", "Call me Robert.", minutes=0)])
    store.memories.remember([told("newer", "Call me Bob.", minutes=1)])
    grace = Grace("call", NOON + timedelta(days=3))

    store.deletion.forget(["newer", "older"], grace=grace)

    with store.exchange.everything() as (_, records):
        kept = [each for each in records if isinstance(each, RecoverableRecord)]
    links = {
        learning.id: learning.superseded_by
        for record in kept
        for learning in record.learnings
    }
    assert links == {"l-older": "l-newer", "l-newer": None}
