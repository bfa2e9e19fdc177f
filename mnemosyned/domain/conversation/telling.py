"""Which facts to show where there is no room for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mnemosyned.domain.text.tokenizer import EXACT_KINDS, Kind, emphasis, tokens

EXACT_WORTH = 2.0
RESULT_SHARE = 0.5
"""A tool's result, which begins with its name in brackets, gives way to what people say."""
COST_CHARS = 16
LENGTH_POWER = 0.55
"""Worth is judged by length, to a power below one, as for the sentences of an extract."""
_SILENT = (Kind.STOP, Kind.COMMON)


def fitting(facts: Sequence[str], room: int, count: Callable[[str], int]) -> list[str]:
    """As many facts as so many tokens hold, the most telling first, in the order they came in."""
    costs = [count(f"- {fact}\n") for fact in facts]
    if sum(costs) <= room:
        return list(facts)
    worth = [telling(fact) for fact in facts]
    chosen: set[int] = set()
    for at in sorted(range(len(facts)), key=lambda at: (-worth[at], -at)):
        if costs[at] <= room:
            chosen.add(at)
            room -= costs[at]
    return [facts[at] for at in sorted(chosen)]


def telling(fact: str) -> float:
    """How much a fact says for its length: rulings and exact values before chatter."""
    words = tokens(" ".join(fact.split()))
    said = sum(
        EXACT_WORTH if word.kind in EXACT_KINDS else 1.0
        for word in {word.stem: word for word in words}.values()
        if word.kind not in _SILENT
    )
    share = RESULT_SHARE if fact.startswith("[") else 1.0
    return share * emphasis(words) * said / float((len(fact) + COST_CHARS) ** LENGTH_POWER)
