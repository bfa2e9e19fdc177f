"""A pytest plugin: LangGraph's tests of its store in memory test `MnemosyneStore`."""

from __future__ import annotations

from itertools import count
from typing import Any

import langgraph.store.memory

from mnemosyned.adapters.langgraph import MnemosyneStore

_numbers = count()


class FreshStore(MnemosyneStore):
    """A store of its own for each test, on one daemon."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 an index of vectors alone
        assert not options, "the tests with an index of vectors are not chosen"
        super().__init__(name=f"test{next(_numbers)}")


langgraph.store.memory.InMemoryStore = FreshStore
