"""Mails with headers."""

from dataclasses import replace

import pytest
from support.records import (
    VIENNA,
    record_lines,
    record_samples,
    record_texts,
    remembered,
)

from mnemosyned.summary.records.summarize import summarize_records


@pytest.mark.parametrize(("content", "expected"), record_samples("mails"))
def test_a_mail_is_its_sender_subject_and_gist(
    content: str, expected: list[str]
) -> None:
    assert record_texts(content) == expected


def test_what_a_long_mail_says_later_is_found_by_index_terms() -> None:
    filler = "The first part is about the harbor and its many berths. " * 8
    mail = f"From: Ben\nSubject: News\n\n{filler}\nThe marmalade contest is in June."
    (line,) = record_lines(mail)
    assert len(line.text) < 420
    assert "marmalade" in line.index_terms or "marmalade" in line.text


def test_a_mail_without_sender_stays_prose() -> None:
    memories = remembered("Subject: to change\nDate: tomorrow\n\nI will write again.")
    assert summarize_records(memories, zone=VIENNA).lines == ()


def test_a_mail_that_the_user_kept_names_only_the_parties_it_has() -> None:
    (memory,) = remembered(
        "From: Ben\nSubject: Berth D07\n\nThe map looks great to me."
    )
    summary = summarize_records([replace(memory, role="user")], zone=VIENNA)
    assert summary.lines[0].text == (
        "Mail from Ben, “Berth D07”: The map looks great to me."
    )
