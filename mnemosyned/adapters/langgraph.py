"""LangGraph's `BaseStore` on a memory: `MnemosyneStore`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
    tokenize_path,
)

from mnemosyned.adapters.common import Steps, keep, listed, run, run_async, value_of
from mnemosyned.client.asynchronous import AsyncClient
from mnemosyned.client.blocking import Client
from mnemosyned.memory.values import PreviewLine
from mnemosyned.verbs.facade import AsyncCaller, Caller
from mnemosyned.verbs.memories import Get, Got, Recall, Recalled, Remember, RememberMany
from mnemosyned.verbs.request import QUERY_CHARS_MAX
from mnemosyned.verbs.retention import Forget

Namespace = tuple[str, ...]

SEARCHED_MAX = 100
"""The most hits that `recall` answers, and so the most items a query finds."""
KEY_MARK = ".."
"""Parts a namespace from a key: labels of namespaces are not empty and have no period."""

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
"""The end of validity of what is no memory to recall."""
_EQUALITIES: dict[str, Callable[[Any, Any], Any]] = {"$eq": eq, "$ne": ne}
_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "$gt": gt,
    "$gte": ge,
    "$lt": lt,
    "$lte": le,
}


class MnemosyneStore(BaseStore):
    """A store whose items are memories, so that every agent of the daemon can recall them.

    `put` stores a new memory that supersedes the item's last one, in one transaction; `get` answers
    the newest, with its exact value. `search` with a query is `recall`: it answers matches alone.
    An item has a session of its own, and a namespace is a source. `name` keeps stores apart.

    The blocking methods call `caller`, the others `async_caller`; by default both are clients of the
    daemon's socket.
    """

    def __init__(
        self,
        caller: Caller | None = None,
        async_caller: AsyncCaller | None = None,
        *,
        name: str = "langgraph",
    ) -> None:
        self._caller = caller or Client()
        self._async_caller = async_caller or AsyncClient()
        self._name = name

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations one after the other: those that read, then the last `put` of each item."""
        wanted = list(ops)
        results: list[Result] = [None] * len(wanted)
        for index in _order(wanted):
            results[index] = run(self._steps(wanted[index]), self._caller)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do what `batch` does, without blocking the event loop."""
        wanted = list(ops)
        results: list[Result] = [None] * len(wanted)
        for index in _order(wanted):
            steps = self._steps(wanted[index])
            results[index] = await run_async(steps, self._async_caller)
        return results

    def _steps(self, op: Op) -> Steps[Result]:
        match op:
            case GetOp():
                return self._get(op.namespace, op.key)
            case PutOp():
                return self._put(op)
            case SearchOp():
                return self._search(op)
            case ListNamespacesOp():
                return self._list_namespaces(op)
        raise ValueError(f"Unknown operation type: {type(op)}")

    # ------------------------------------------------------------ one item

    def _source(self, namespace: Namespace) -> str:
        return f"{self._name}:{'.'.join(namespace)}"

    def _session(self, namespace: Namespace, key: str) -> str:
        return self._source(namespace) + KEY_MARK + key

    def _item_of(self, session: str) -> tuple[Namespace, str]:
        path, _, key = session.removeprefix(f"{self._name}:").partition(KEY_MARK)
        return tuple(path.split(".")), key

    def _versions(self, namespace: Namespace, key: str) -> Steps[list[PreviewLine]]:
        return listed(
            session=self._session(namespace, key), source=self._source(namespace)
        )

    def _get(self, namespace: Namespace, key: str) -> Steps[Item | None]:
        fields = yield from self._read(namespace, key)
        return Item(**fields) if fields else None

    def _read(self, namespace: Namespace, key: str) -> Steps[dict[str, Any]]:
        """Read the fields of an item; none where there is no such item."""
        versions = yield from self._versions(namespace, key)
        value = (yield from value_of(versions[-1].id)) if versions else None
        if value is None:
            return {}
        return {
            "namespace": namespace,
            "key": key,
            "value": value,
            "created_at": versions[0].created_at,
            "updated_at": versions[-1].created_at,
        }

    def _put(self, op: PutOp) -> Steps[None]:
        session, source = (
            self._session(op.namespace, op.key),
            self._source(op.namespace),
        )
        versions = yield from self._versions(op.namespace, op.key)
        if op.value is None:
            if versions:
                yield Forget(session=session, source=source)
            return
        value = dict(op.value)
        item = keep(
            _text(op.key, value, [] if op.index is False else op.index),
            value,
            session=session,
            source=source,
            supersedes=versions[-1].id if versions else None,
        )
        yield RememberMany([self._registration(op.namespace), item])

    # ---------------------------------------------------------- namespaces

    def _registration(self, namespace: Namespace) -> Remember:
        """The memory that says that a namespace exists; storing it again changes nothing."""
        return Remember(
            f"namespace {'.'.join(namespace)}",
            id=self._source(namespace),
            session=self._name,
            source=self._name,
            valid_until=LONG_AGO,
        )

    def _namespaces(self) -> Steps[list[Namespace]]:
        lines = yield from listed(session=self._name, source=self._name)
        prefix = f"{self._name}:"
        return [tuple(line.id.removeprefix(prefix).split(".")) for line in lines]

    def _list_namespaces(self, op: ListNamespacesOp) -> Steps[list[Namespace]]:
        conditions = op.match_conditions or ()
        namespaces = yield from self._namespaces()
        chosen = {
            namespace[: op.max_depth]
            for namespace in namespaces
            if all(_matches(namespace, condition) for condition in conditions)
        }
        return sorted(chosen)[op.offset : op.offset + op.limit]

    # -------------------------------------------------------------- search

    def _search(self, op: SearchOp) -> Steps[list[SearchItem]]:
        depth = len(op.namespace_prefix)
        namespaces = yield from self._namespaces()
        sources = [
            self._source(namespace)
            for namespace in namespaces
            if namespace[:depth] == tuple(op.namespace_prefix)
        ]
        if not sources:
            return []
        if op.query:
            candidates = yield from self._recalled(op.query, sources)
        else:
            lines = yield from listed(source=sources)
            candidates = dict.fromkeys(_by_session(lines))
        return (yield from self._page(op, candidates))

    def _recalled(
        self, query: str, sources: list[str]
    ) -> Steps[dict[str, float | None]]:
        """The sessions of items that match a query, best first, with their scores."""
        recalled: Recalled = yield Recall(
            query[:QUERY_CHARS_MAX], source=sources, limit=SEARCHED_MAX
        )
        sessions: dict[str, float | None] = {}
        for hit in recalled:
            sessions.setdefault(hit.session, hit.score)
            for line in hit.lines:  # items with the same words share a place
                got: Got = yield Get(line.id)
                if got.memory:
                    sessions.setdefault(got.memory.session, line.score)
        return sessions

    def _page(
        self, op: SearchOp, candidates: Mapping[str, float | None]
    ) -> Steps[list[SearchItem]]:
        """Read candidates until the page is full."""
        sessions = list(candidates)
        skipped = op.offset
        if not op.filter:  # what comes before the page need not be read
            sessions, skipped = sessions[op.offset :], 0
        items: list[SearchItem] = []
        for session in sessions:
            if len(items) >= skipped + op.limit:
                break
            fields = yield from self._read(*self._item_of(session))
            if fields and _passes(fields["value"], op.filter):
                items.append(SearchItem(**fields, score=candidates[session]))
        return items[skipped:]


def _order(ops: list[Op]) -> list[int]:
    """The operations to run, by position: what an earlier `put` of an item stored is not seen."""
    reads = [index for index, op in enumerate(ops) if not isinstance(op, PutOp)]
    puts = {
        (op.namespace, op.key): index
        for index, op in enumerate(ops)
        if isinstance(op, PutOp)
    }
    return reads + sorted(puts.values())


def _text(key: str, value: Mapping[str, Any], paths: Iterable[str] | None) -> str:
    """The text by which `recall` finds an item: the fields at `paths`, or all; never nothing."""
    if paths is None:
        texts = [_line(name, field) for name, field in value.items()]
    else:
        fields = [get_text_at_path(value, tokenize_path(path)) for path in paths]
        texts = [text for field in fields for text in field]
    return "\n".join(filter(str.strip, texts)) or key


def _line(name: str, field: object) -> str:
    text = field
    if not isinstance(field, str):
        text = json.dumps(field, ensure_ascii=False, default=str)
    return f"{name}: {text}"


def _by_session(lines: Iterable[PreviewLine]) -> list[str]:
    """The sessions of a listing, in the order of their first memories."""
    return list(dict.fromkeys(line.session for line in lines))


def _matches(namespace: Namespace, condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)]
    if condition.match_type == "suffix":
        part = namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))


def _passes(value: Mapping[str, Any], conditions: Mapping[str, Any] | None) -> bool:
    """Tell whether an item's fields are as a search asks."""
    return all(
        _compares(value.get(name), condition)
        for name, condition in (conditions or {}).items()
    )


def _compares(field: Any, condition: Any) -> bool:  # noqa: ANN401 values of JSON
    """Compare a field with a value, or with operators such as `{"$gt": 3}`."""
    if not isinstance(condition, dict):
        return bool(field == condition)
    if not any(name.startswith("$") for name in condition):
        return isinstance(field, dict) and _passes(field, condition)
    return all(_holds(field, name, given) for name, given in condition.items())


def _holds(field: Any, operator: str, given: Any) -> bool:  # noqa: ANN401 values of JSON
    if operator in _EQUALITIES:
        return bool(_EQUALITIES[operator](field, given))
    if operator not in _ORDERS:
        raise ValueError(f"Unsupported operator: {operator}")
    return field is not None and _ORDERS[operator](float(field), float(given))
