"""Tables of several formats."""

import pytest
from support.records import record_lines, record_samples, record_texts


@pytest.mark.parametrize(("content", "expected"), record_samples("tables"))
def test_a_table_is_its_size_columns_and_first_rows(
    content: str, expected: list[str]
) -> None:
    assert record_texts(content) == expected


def test_a_long_table_shows_its_first_rows() -> None:
    rows = "\n".join(f"2026-03-{n:02},Item {n},{n}.50" for n in range(1, 15))
    (line,) = record_lines(f"date,item,amount\n{rows}")
    assert line.text.startswith(
        "Table of 14 rows with columns date, item and amount; first rows: "
    )
    assert "item Item 3, amount 3.50" in line.text
    assert "Item 4" not in line.text


def test_a_wide_table_counts_its_columns() -> None:
    header = ",".join(f"column_{letter}" for letter in "abcdefghijkl")
    row = ",".join("12345678901x")
    (text,) = record_texts(f"{header}\n{row}\n{row}\n{row}")
    assert "column_h and 4 more" in text
