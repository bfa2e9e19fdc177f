"""The Dutch language."""

from __future__ import annotations

from mnemosyned.text.languages.language import Language

DUTCH = Language(
    code="nl",
    stop_words="""
        de het een en van ik te dat die in is niet op met voor zijn er aan om ook
        als maar naar bij uit nog heeft hebben wordt werd door ze hij wij
    """,
    deeds="doe doet doen deed deden gedaan gebeurde gebeurd er wat ik op",
    continuations="""
        verder doorgaan ga nu dan daarna volgende stap bedankt dank perfect prima ja
        klaar
    """,
    months=(
        "januari",
        "februari",
        "maart",
        "april",
        "mei",
        "juni",
        "juli",
        "augustus",
        "september",
        "oktober",
        "november",
        "december",
    ),
    backward_heads="""
        hij zij ze dit dat deze daarom daarna omdat want toen anders
    """,
    connectives="en maar dus dan ook",
    openers="nou oh ja nee ok oké",
    courtesies="hallo hoi dag bedankt dank groetjes groeten",
)
