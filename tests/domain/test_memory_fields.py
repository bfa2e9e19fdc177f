"""One table of a memory's fields."""

from dataclasses import fields

from mnemosyned.memory.exchange import ExportedMemory
from mnemosyned.memory.fields import FIELDS
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.verbs.memories import EditMemory


def test_the_table_has_every_field_of_a_memory() -> None:
    assert {field.name for field in FIELDS} == {
        field.name for field in fields(MemoryRecord)
    }


def test_what_the_table_exports_is_in_the_records_of_an_export() -> None:
    exported = {field.name for field in fields(ExportedMemory)}

    assert {field.name for field in FIELDS if field.exported} <= exported
    assert not {field.name for field in FIELDS if not field.exported} & exported


def test_what_the_table_lets_change_is_in_the_request_of_an_edit() -> None:
    editable = {field.name for field in FIELDS if field.editable} - {"content"}

    assert editable <= set(EditMemory.__struct_fields__)
