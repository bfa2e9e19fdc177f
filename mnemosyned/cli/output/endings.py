"""Ended statements in words."""

from __future__ import annotations

import click

from mnemosyned.cli.output.show import CELLS, RENDERERS, Renderer, page_remark
from mnemosyned.cli.output.terminal import (
    LINE_CHARS,
    count_of,
    cut_text,
    local_time,
    wrap_paragraph,
)
from mnemosyned.verbs.endings import EndedLine, EndingList, UndoneEnding


def _ended_text(ended: EndedLine) -> str:
    """Return an ended statement as lines: a head, the statement, and its successor."""
    state = "undone" if ended.undone else ended.reason
    head = f"{local_time(ended.found_at)}  {state}  {ended.id}"
    lines = [click.style(head, dim=True)]
    for label, sentence in (("ended", ended.sentence), ("by", ended.successor)):
        words = cut_text(sentence, LINE_CHARS) or "(its words were pruned)"
        lines.append(wrap_paragraph(f"{label}: {words}"))
    return "\n".join(lines)


RENDERERS[EndingList] = Renderer(
    lambda result: "\n".join(map(_ended_text, result.endings)),
    lambda result: page_remark(len(result), result.next, "no statement was ended"),
    lambda result: result.endings,
)
RENDERERS[UndoneEnding] = Renderer(
    lambda result: f"{result.id}: {count_of(result.changed, 'ending')} changed"
)
CELLS[EndedLine] = "id by reason sentence successor at found_at undone".split()
