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

from mnemosyned.adapters import common
from mnemosyned.client import asynchronous, blocking
from mnemosyned.verbs import facade, memories, request, retention

Namespace = tuple[str, ...]

SEARCHED_MAX = 100
"""Maximum hits that `recall` returns, and so the maximum items that a query finds."""
KEY_MARK = ".."
"""Separates a namespace from a key: labels of namespaces are not empty and have no period."""

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
"""End of validity for entries that recall must not find."""
_EQUALITIES: dict[str, Callable[[Any, Any], Any]] = {"$eq": eq, "$ne": ne}
_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "$gt": gt,
    "$gte": ge,
    "$lt": lt,
    "$lte": le,
}


class MnemosyneStore(BaseStore):
    """A store whose items are memories for every agent of the daemon.

    `put` stores a new memory that supersedes the item's last one, in one transaction; `get` answers
    the newest, with its exact value. `search` with a query is `recall`: it answers matches alone.
    An item has a session of its own, and a namespace is a source.
    """

    def __init__(
        self,
        caller: facade.Caller | None = None,
        async_caller: facade.AsyncCaller | None = None,
        *,
        name: str = "langgraph",
    ) -> None:
        """Call `caller` in blocking methods, `async_caller` in others; by default the daemon's socket.

        Stores of different `name` share no items.
        """
        self._caller = caller or blocking.Client()
        self._async_caller = async_caller or asynchronous.AsyncClient()
        self._name = name

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run all reads, then the last `put` of each item; return a result for each op, None for a `put`."""
        return common.run_steps(self._results_of(list(ops)), self._caller)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations as `batch` does, without blocking the event loop."""
        return await common.run_steps_async(
            self._results_of(list(ops)), self._async_caller
        )

    def _results_of(self, ops: list[Op]) -> common.Steps[list[Result]]:
        """Return a generator of requests for all reads and each item's last `put`; its value is the results."""
        order = [index for index, op in enumerate(ops) if not isinstance(op, PutOp)]
        puts = {
            (op.namespace, op.key): index
            for index, op in enumerate(ops)
            if isinstance(op, PutOp)
        }
        order += sorted(puts.values())
        results: list[Result] = [None] * len(ops)
        for index in order:
            results[index] = yield from self._steps_of(ops[index])
        return results

    def _steps_of(self, op: Op) -> common.Steps[Result]:
        """Return a generator of requests that run an operation. Raises `ValueError` for an unknown kind."""
        match op:
            case GetOp():
                return self._get_item(op.namespace, op.key)
            case PutOp():
                return self._put_item(op)
            case SearchOp():
                return self._search_items(op)
            case ListNamespacesOp():
                return self._list_namespaces(op)
        raise ValueError(f"Unknown operation type: {type(op)}")

    # ------------------------------------------------------------ one item

    def _source_of(self, namespace: Namespace) -> str:
        """Return the source for a namespace: the store's name, and the labels joined by dots."""
        return f"{self._name}:{'.'.join(namespace)}"

    def _origin_of(self, namespace: Namespace, key: str) -> tuple[str, str]:
        """Return the session, made of the key, and the source, made of the namespace, of an item's memories."""
        source = self._source_of(namespace)
        return f"{source}{KEY_MARK}{key}", source

    def _get_item(self, namespace: Namespace, key: str) -> common.Steps[Item | None]:
        """Return steps that read an item; their value is the item, or None."""
        fields = yield from self._read_fields(namespace, key)
        return Item(**fields) if fields else None

    def _read_fields(
        self, namespace: Namespace, key: str
    ) -> common.Steps[dict[str, Any]]:
        """Return steps that read an item's newest value, as keyword arguments of `Item`; empty without one."""
        session, source = self._origin_of(namespace, key)
        versions = yield from common.list_records(session=session, source=source)
        value = (
            (yield from common.read_record_value(versions[-1].id)) if versions else None
        )
        if value is None:
            return {}
        return {
            "namespace": namespace,
            "key": key,
            "value": value,
            "created_at": versions[0].created_at,
            "updated_at": versions[-1].created_at,
        }

    def _put_item(self, op: PutOp) -> common.Steps[None]:
        """Return steps that store a new version of an item, or forget all versions if the value is None."""
        session, source = self._origin_of(op.namespace, op.key)
        versions = yield from common.list_records(session=session, source=source)
        if op.value is None:
            if versions:
                yield retention.Forget(session=session, source=source)
            return
        value = dict(op.value)
        item = common.make_record_memory(
            _searchable_text(op.key, value, [] if op.index is False else op.index),
            value,
            session=session,
            source=source,
            supersedes=versions[-1].id if versions else None,
        )
        registration = memories.Remember(  # storing it again changes nothing
            f"namespace {'.'.join(op.namespace)}",
            id=source,
            session=self._name,
            source=self._name,
            valid_until=LONG_AGO,
        )
        yield memories.RememberMany([registration, item])

    # ---------------------------------------------------------- namespaces

    def _all_namespaces(self) -> common.Steps[list[Namespace]]:
        """Return steps that list all namespaces of the store in which an item was ever stored."""
        lines = yield from common.list_records(session=self._name, source=self._name)
        prefix = f"{self._name}:"
        return [tuple(line.id.removeprefix(prefix).split(".")) for line in lines]

    def _list_namespaces(self, op: ListNamespacesOp) -> common.Steps[list[Namespace]]:
        """Return steps that list a page of the namespaces that meet an operation's conditions."""
        conditions = op.match_conditions or ()
        namespaces = yield from self._all_namespaces()
        chosen = {
            namespace[: op.max_depth]
            for namespace in namespaces
            if all(_matches_condition(namespace, condition) for condition in conditions)
        }
        return sorted(chosen)[op.offset : op.offset + op.limit]

    # -------------------------------------------------------------- search

    def _search_items(self, op: SearchOp) -> common.Steps[list[SearchItem]]:
        """Return steps that find a page of items: by query, best first, or without a query, oldest first."""
        depth = len(op.namespace_prefix)
        namespaces = yield from self._all_namespaces()
        sources = [
            self._source_of(namespace)
            for namespace in namespaces
            if namespace[:depth] == tuple(op.namespace_prefix)
        ]
        if not sources:
            return []
        if op.query:
            candidates = yield from self._recall_sessions(op.query, sources)
        else:
            lines = yield from common.list_records(source=sources)
            candidates = dict.fromkeys(line.session for line in lines)
        return (yield from self._read_result_page(op, candidates))

    def _recall_sessions(
        self, query: str, sources: list[str]
    ) -> common.Steps[dict[str, float | None]]:
        """Return steps that recall items by a query; the value is {session of an item: score}, best first."""
        recalled: memories.Recalled = yield memories.Recall(
            query[: request.QUERY_CHARS_MAX], source=sources, limit=SEARCHED_MAX
        )
        sessions: dict[str, float | None] = {}
        for hit in recalled:
            sessions.setdefault(hit.session, hit.score)
            for line in hit.lines:  # items with the same words share a place
                got: memories.Got = yield memories.Get(line.id)
                if got.memory:
                    sessions.setdefault(got.memory.session, line.score)
        return sessions

    def _read_result_page(
        self, op: SearchOp, candidates: Mapping[str, float | None]
    ) -> common.Steps[list[SearchItem]]:
        """Return steps that read a page of the items in `candidates`, {session: score}, after the filter."""
        sessions = list(candidates)
        skipped = op.offset
        if not op.filter:  # items before the page need not be read
            sessions, skipped = sessions[op.offset :], 0
        items: list[SearchItem] = []
        for session in sessions:
            if len(items) >= skipped + op.limit:
                break
            path, _, key = session.removeprefix(f"{self._name}:").partition(KEY_MARK)
            fields = yield from self._read_fields(tuple(path.split(".")), key)
            if fields and _passes_filter(fields["value"], op.filter):
                items.append(SearchItem(**fields, score=candidates[session]))
        return items[skipped:]


def _searchable_text(
    key: str, value: Mapping[str, Any], paths: Iterable[str] | None
) -> str:
    """Return the text by which a search finds an item: fields at `paths` (None: all), or the key if blank."""
    if paths is None:
        texts = []
        for name, field in value.items():
            is_text = isinstance(field, str)
            text = (
                field if is_text else json.dumps(field, ensure_ascii=False, default=str)
            )
            texts.append(f"{name}: {text}")
    else:
        fields = [get_text_at_path(value, tokenize_path(path)) for path in paths]
        texts = [text for field in fields for text in field]
    return "\n".join(filter(str.strip, texts)) or key


def _matches_condition(namespace: Namespace, condition: MatchCondition) -> bool:
    """Return True if a namespace begins or ends with a condition's path, in which `*` is any label."""
    path = tuple(condition.path)
    if condition.match_type == "suffix":
        namespace, path = namespace[::-1], path[::-1]
    pairs = zip(namespace, path, strict=False)
    return len(namespace) >= len(path) and all(
        wanted in ("*", label) for label, wanted in pairs
    )


def _passes_filter(
    value: Mapping[str, Any], conditions: Mapping[str, Any] | None
) -> bool:
    """Return whether fields meet all conditions: each is a required value or a comparison, as `{"$gt": 3}`."""
    return all(
        _compare_field(value.get(name), condition)
        for name, condition in (conditions or {}).items()
    )


def _compare_field(field: Any, condition: Any) -> bool:  # noqa: ANN401 values of JSON
    """Return True if a field meets a condition of a filter. Raises `ValueError` for an unknown operator."""
    if not isinstance(condition, dict):
        return bool(field == condition)
    if not any(name.startswith("$") for name in condition):
        return isinstance(field, dict) and _passes_filter(field, condition)
    for operator, given in condition.items():
        if operator in _EQUALITIES:
            holds = bool(_EQUALITIES[operator](field, given))
        elif operator in _ORDERS:
            is_given = field is not None
            holds = is_given and _ORDERS[operator](float(field), float(given))
        else:
            raise ValueError(f"Unsupported operator: {operator}")
        if not holds:
            return False
    return True
