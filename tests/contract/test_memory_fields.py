"""One table of a memory's fields, by which every field of it goes whole through every store."""

from dataclasses import MISSING, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.fakes import NOON, consolidate, promotion, remember_batch
from support.stores import get_memory

from mnemosyned.assembly.stores import open_store
from mnemosyned.config.settings import DatabaseLocation
from mnemosyned.memory.edit import MemoryEdit
from mnemosyned.memory.exchange import ExportedMemory
from mnemosyned.memory.forgetting import ForgetFilter, Grace
from mnemosyned.memory.listing import ListFilter
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.memory.values import (
    EDITABLE,
    FIELDS,
    FILTER_FIELDS,
    NAMING_FIELDS,
    ROW_FIELDS,
    FieldKind,
    MemoryField,
    MemoryFilter,
    MemoryRecord,
    Tier,
)
from mnemosyned.search.query import Query, RankedResult
from mnemosyned.service.service import MemoryService
from mnemosyned.text.languages.tables import TimeOrder
from mnemosyned.text.terms import parse_terms
from mnemosyned.verbs.memories import EditMemory, Remember

FOLLOWING = {
    "tier",
    "episode",
    "superseded_at",
    "superseded_by",
    "pruned_at",
    "edited_at",
}
"""Fields that follow from what happens to a memory."""


def values(mark: str, *, number: float) -> dict[str, Any]:
    """Values of all fields that may be given to a memory, none of which is the default."""
    by_kind = {
        FieldKind.NUMBER: number,
        FieldKind.FLAG: True,
        FieldKind.TIME: NOON - timedelta(hours=number),
        FieldKind.JSON: {"mark": mark},
    }
    columns = {
        field.name: by_kind.get(field.kind, f"{mark} {field.name}")
        for field in ROW_FIELDS
    }
    others = {"tags": (mark,), "valid_until": NOON + timedelta(days=9_000)}
    return columns | others


WHOLE = MemoryRecord(**values("first", number=0.75))


def test_the_table_has_every_field_of_a_memory() -> None:
    of_memory = {field.name for field in fields(MemoryRecord)}

    assert {field.name for field in FIELDS} == of_memory
    assert set(values("first", number=0.75)) == of_memory - FOLLOWING


def test_a_memory_with_all_fields_has_no_default() -> None:
    for field in fields(MemoryRecord):
        makes = field.default_factory
        default = field.default if makes is MISSING else makes()
        assert field.name in FOLLOWING or getattr(WHOLE, field.name) != default


def test_what_the_table_exports_is_in_the_records_of_an_export() -> None:
    exported = {field.name for field in fields(ExportedMemory)}

    assert {field.name for field in FIELDS if field.exported} <= exported
    assert not {field.name for field in FIELDS if not field.exported} & exported


def test_what_the_table_lets_change_is_in_the_request_of_an_edit() -> None:
    assert set(EDITABLE) <= set(EditMemory.__struct_fields__)


def test_every_field_is_remembered(store: MemoryStore, service: MemoryService) -> None:
    given: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values("first", number=0.75).items()
    }
    of_request = set(Remember.__struct_fields__)

    service.call(Remember(**given))

    assert set(given) <= of_request
    assert get_memory(store, WHOLE.id) == WHOLE


def test_every_field_is_listed(store: MemoryStore) -> None:
    remember_batch(store, WHOLE)

    assert store.lists.page(ListFilter(limit=1)).memories == [WHOLE]


def test_every_field_is_kept_in_the_archive_and_by_an_undo(store: MemoryStore) -> None:
    unpinned = replace(WHOLE, pinned=False)
    remember_batch(store, unpinned)
    consolidate(store, promotion("summary", unpinned))

    archived = get_memory(store, WHOLE.id)
    store.undo.undo_episodes(["summary"], now=NOON, held_until=NOON)

    assert archived == replace(unpinned, tier=Tier.ARCHIVE, episode="summary")
    assert get_memory(store, WHOLE.id) == unpinned


def test_every_field_is_exported(store: MemoryStore, tmp_path: Path) -> None:
    remember_batch(store, WHOLE)

    with open_store(DatabaseLocation(tmp_path / "target.db")) as target:
        with store.exchange.export(MemoryFilter()) as (_, records):
            target.exchange.restore(list(records))

        assert get_memory(target, WHOLE.id) == WHOLE


def test_every_field_is_put_back(store: MemoryStore, tmp_path: Path) -> None:
    remember_batch(store, WHOLE)
    store.deletion.forget([WHOLE.id], grace=Grace("call", NOON))

    with open_store(DatabaseLocation(tmp_path / "target.db")) as target:
        with store.exchange.everything() as (_, records):
            target.exchange.restore(list(records))
        for each in (store, target):
            each.deletion.put_back([WHOLE.id])

            assert get_memory(each, WHOLE.id) == WHOLE


def test_every_editable_field_is_kept_in_a_revision(store: MemoryStore) -> None:
    remember_batch(store, WHOLE)
    other = values("second", number=0.25)
    changes = {name: other[name] for name in (*EDITABLE, "content")}
    after = replace(WHOLE, **changes)

    store.changes.edit([MemoryEdit(before=WHOLE, after=after)], now=NOON)

    assert get_memory(store, WHOLE.id) == replace(after, edited_at=NOON)
    (revision,) = store.changes.revisions(WHOLE.id)
    assert set(revision.fields) == set(EDITABLE)


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("field", FILTER_FIELDS, ids=lambda field: field.name)
def test_memories_are_selected_by_each_field_with_a_filter(
    store: MemoryStore, field: MemoryField, *, archived: bool
) -> None:
    changes: dict[str, Any] = {"id": "other", field.name: "another value"}
    other = replace(WHOLE, **changes)
    for each in (WHOLE, other):
        unpinned = replace(each, pinned=False)
        remember_batch(store, unpinned)
        if archived:
            consolidate(store, promotion(f"summary of {each.id}", unpinned))
    wanted: dict[str, Any] = {field.filter: (getattr(WHOLE, field.name),)}
    query = Query(terms=parse_terms("first content"), limit=10, **wanted)
    timed = replace(query, order=TimeOrder.CURRENT)

    with store.exchange.export(MemoryFilter(**wanted)) as (expected, records):
        exported = [each.id for each in records if isinstance(each, ExportedMemory)]
    for asked in (query, timed):
        matches = store.search.candidates(asked).memories
        found = store.search.documents(
            [RankedResult(1.0, match.position) for match in matches]
        )
        assert [each.id for each in found.memories.values()] == [WHOLE.id]

    page = store.lists.page(ListFilter(limit=10, **wanted))
    assert [each.id for each in page.memories] == [WHOLE.id]
    assert store.deletion.select(ForgetFilter(**wanted)) == [WHOLE.id]
    assert (exported, expected["memory"]) == ([WHOLE.id], 1)


@pytest.mark.parametrize("field", NAMING_FIELDS, ids=lambda field: field.name)
def test_a_person_is_found_in_each_field(
    store: MemoryStore, field: MemoryField
) -> None:
    name = "Zoe"
    value = {"by": name} if field.kind is FieldKind.JSON else f"of {name}"
    changes: dict[str, Any] = {"id": "named", field.name: value}
    remember_batch(store, WHOLE, replace(WHOLE, **changes))

    selected = store.deletion.select(ForgetFilter(person=name))

    assert selected == ["named"]
