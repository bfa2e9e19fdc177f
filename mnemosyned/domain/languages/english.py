"""The English language."""

from __future__ import annotations

from mnemosyned.domain.languages.language import Language

ENGLISH = Language(
    code="en",
    stop_words="""
        the and of to is was were with that this for have has had are be been they
        she he his her their from not will would about which who at on it by as an
        or but you we
    """,
    continuations="""
        ahead step steps proceed continue resume carry keep start begin ready sure
        fine great perfect nice cool awesome agreed correct exactly right yep yup nope
        done finish ship do redo retry next
    """,
    months=(
        "january jan",
        "february feb",
        "march mar",
        "april apr",
        "may",
        "june jun",
        "july jul",
        "august aug",
        "september sep sept",
        "october oct",
        "november nov",
        "december dec",
    ),
    months_capitalized=True,
    weekdays=(
        "monday mon",
        "tuesday tue tues",
        "wednesday wed",
        "thursday thu thurs",
        "friday fri",
        "saturday sat",
        "sunday sun",
    ),
    counts=(
        "one a an",
        "two couple",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
    ),
)
