"""Results of verbs on memories in words: remember, recall, get, expand, edit, tag and pin."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

import click

from mnemosyned.cli.output.terminal import (
    LINE_CHARS,
    counted,
    cut,
    cut_line,
    ellipsis,
    flowed,
    indented,
    level_name,
    pairs,
    when,
    width,
    wrapped,
    wrapped_lines,
)
from mnemosyned.memory.values import Acknowledged, Episode, MemoryRecord, Revision, Tier
from mnemosyned.search.hits import Hit, Line
from mnemosyned.text.details import Detail, DetailKind
from mnemosyned.text.sentences import UNSPACED, WORD_END, WORD_START
from mnemosyned.verbs.memories import (
    Edited,
    Expanded,
    Foreseen,
    Got,
    Pinned,
    Recalled,
    Tagged,
)

GRAM_CHARS = 2
"""Characters of a part of a script without spaces, which matches anywhere."""
SHORT_CHARS = 4
"""Words of up to so many letters match with a common ending alone: `tea` is not `team`."""


def highlighted(text: str, matching: Sequence[str]) -> str:
    """A text whose words with these beginnings stand out."""
    if not matching:
        return text
    pattern = re.compile("|".join(map(_pattern, map(_folded, matching))))
    parts: list[str] = []
    end = 0
    for match in pattern.finditer(_folded(text)):
        word = click.style(text[match.start() : match.end()], bold=True, underline=True)
        parts += [text[end : match.start()], word]
        end = match.end()
    return "".join([*parts, text[end:]])


def _pattern(word: str) -> str:
    if len(word) <= GRAM_CHARS and not word.isascii():
        return re.escape(word)
    if not word.isalpha():
        return f"{WORD_START}{re.escape(word)}{WORD_END}"
    ending = (
        r"(?:s|e[sd]?|ing|y|ies)?"
        if len(word) <= SHORT_CHARS
        else f"[^\\W{UNSPACED}]{{0,6}}"
    )
    return f"{WORD_START}{re.escape(word)}{ending}{WORD_END}"


def _folded(text: str) -> str:
    """A text in lower case without accents, with a character for each of its own."""
    if text.isascii():
        return text.lower()
    return "".join(
        unicodedata.normalize("NFD", character.lower()[0])[0] for character in text
    )


TITLE_CHARS = 100
"""Characters of a first line that counts as a title."""
SUMMARY_LINES_MAX = 12
"""Lines shown of a summary that answers by itself, such as a day."""


def acknowledged(result: Acknowledged) -> str:
    """The id of a memory that was stored."""
    return result.id


def on_acknowledged(result: Acknowledged) -> str:
    """Remarks on a memory that was stored."""
    notes = [] if result.stored else ["already known"]
    if result.forgotten:
        notes = ["it was forgotten, and stays so"]
    if result.secrets:
        notes.append(f"a secret in it was {result.secrets}")
    return "; ".join(notes)


def recalled(result: Recalled, first: int = 1) -> str:
    """The hits, numbered."""
    return "\n\n".join(
        _hit(number, hit, result.matching)
        for number, hit in enumerate(result.hits, first)
    )


def on_recalled(result: Recalled) -> str:
    """A remark on an answer that lacks something."""
    return "\n".join(
        filter(None, ["" if result.hits else "nothing found", result.note])
    )


def _hit(number: int, hit: Hit, matching: Sequence[str]) -> str:
    where = "  ".join(
        part for part in (hit.session, hit.source or "", hit.role) if part
    )
    head = click.style(
        f"{number}. {when(hit.created_at)}  {hit.tier.value}  {where}", bold=True
    )
    lines = [head, click.style(f"   {hit.id}", dim=True)]
    if hit.superseded_at:
        lines.append(f"   superseded {_superseded(hit.superseded_at)}")
    lines += [highlighted(line, matching) for line in _hit_text(hit)]
    lines += _more(hit)
    lines += [
        click.style(
            wrapped(
                f"before, {when(older.created_at)}: “{cut(older.content, LINE_CHARS)}”"
            ),
            dim=True,
        )
        for older in hit.history
    ]
    return "\n".join([*lines, *_notes(hit)])


def _hit_text(hit: Hit) -> list[str]:
    """Text of a hit: originals that matched, the lines of a summary, or the part that matches."""
    if hit.tier is not Tier.EPISODIC:
        return [*_title(hit), wrapped_lines(hit.snippet)]
    if hit.lines:
        return [_quote(hit, line) for line in hit.lines]
    summary = hit.content.split("\n")
    if len(summary) == 1:
        return [wrapped(hit.snippet)]
    return [wrapped(cut(line, LINE_CHARS)) for line in summary[:SUMMARY_LINES_MAX]]


def _title(hit: Hit) -> list[str]:
    """The first line of a long text, where the part that matches begins behind it."""
    title, _, further = hit.content.partition("\n")
    is_title = further and 0 < len(title.strip()) <= TITLE_CHARS
    is_shown = not hit.snippet.startswith("…") or title in hit.snippet
    return [wrapped(title)] if is_title and not is_shown else []


def _quote(hit: Hit, line: Line) -> str:
    """An original that matched: who said it when, and its words, code with its line breaks."""
    who = f"{line.role}: " if line.role else ""
    stamp = "" if len(hit.summary_of) == 1 else f"{when(line.created_at)}  "
    stamp += "superseded  " if line.superseded_at else ""
    if "\n" not in line.content.strip():
        return wrapped(f"{stamp}{who}“{cut(line.content, LINE_CHARS)}”")
    lines = line.content.strip("\n").split("\n")
    shown = [cut_line(text, LINE_CHARS) for text in lines[:SUMMARY_LINES_MAX]]
    if len(lines) > len(shown):
        shown.append(ellipsis())
    head = [wrapped(f"{stamp}{who}".rstrip())] if stamp or who else []
    return "\n".join([*head, wrapped_lines("\n".join(shown))])


def _more(hit: Hit) -> list[str]:
    """The command that shows all of a summary, where the text above is not all of it."""
    if hit.tier is not Tier.EPISODIC:
        return []
    if not hit.lines:
        left_out = hit.content.count("\n") + 1 - SUMMARY_LINES_MAX
        more = counted(left_out, "more line") if left_out > 0 else "made of others"
        is_whole = "\n" not in hit.content
        return [] if is_whole else [_dim(f"{more}: mnem expand {hit.id} --depth 1")]
    if len(hit.summary_of) <= 1:
        return []
    count = f"{len(hit.lines)} of {len(hit.summary_of)}"
    return [_dim(f"{count} originals: mnem expand {hit.id}")]


def _dim(note: str) -> str:
    return click.style(f"   {note}", dim=True)


def _notes(hit: Hit) -> list[str]:
    """Number of duplicates of a hit, and the parts of its score."""
    notes = []
    if hit.duplicates:
        says = "says" if hit.duplicates == 1 else "say"
        notes.append(f"   and {hit.duplicates} more that {says} the same")
    if hit.explanation is not None:
        parts = "  ".join(
            f"{name} {part:+.2f}" for name, part in hit.explanation.items()
        )
        notes.append(f"   score {hit.score:.2f} = {parts}")
    return [click.style(note, dim=True) for note in notes]


def got(result: Got) -> str:
    """One memory or episode in full."""
    if result.memory:
        earlier = [_revision(revision) for revision in result.revisions]
        return "\n\n".join([_memory(result.memory), *earlier])
    return _episode(result.episode) if result.episode else ""


def _memory(memory: MemoryRecord) -> str:
    rows = [
        ("id", memory.id),
        ("tier", memory.tier.value),
        ("when", when(memory.created_at)),
        ("session", memory.session),
        ("source", memory.source or ""),
        ("role", memory.role),
        ("importance", f"{memory.importance:g}"),
        ("pinned", "yes" if memory.pinned else ""),
        ("tags", ", ".join(memory.tags)),
        ("edited", _edited(memory)),
        ("metadata", str(dict(memory.metadata)) if memory.metadata else ""),
        ("episode", memory.episode or ""),
        ("valid until", _until(memory.valid_until)),
        ("superseded", _superseded(memory.superseded_at, memory.superseded_by)),
    ]
    return f"{pairs(rows)}\n\n{flowed(_words(memory))}"


def _edited(memory: MemoryRecord) -> str:
    if not memory.edited_at:
        return ""
    return f"{when(memory.edited_at)}; mnem get {memory.id} --history shows what it was"


def _revision(revision: Revision) -> str:
    """The line of what a memory was until a change."""
    head = click.style(f"until {when(revision.changed_at)}", dim=True)
    fields = [f"   {name}: {value}" for name, value in revision.fields.items()]
    text = [] if revision.text is None else [indented(revision.text)]
    return "\n".join([head, *fields, *text])


def _words(memory: MemoryRecord) -> str:
    if memory.pruned_at:
        return click.style(f"(pruned on {when(memory.pruned_at)})", dim=True)
    return memory.content


def _until(moment: datetime | None) -> str:
    over = moment is not None and moment <= datetime.now(UTC)
    return when(moment) + (", so it is not recalled any more" if over else "")


def _superseded(moment: datetime | None, by: str | None = None) -> str:
    return f"on {when(moment)}{f' by {by}' if by else ''}" if moment else ""


def _episode(episode: Episode) -> str:
    rows = [
        ("id", episode.id),
        ("tier", episode.tier.value),
        ("covers", f"{when(episode.covers_from)} to {when(episode.covers_until)}"),
        ("session", episode.session),
        ("source", episode.source or ""),
        ("level", level_name(episode.level) if episode.level else ""),
        ("originals", str(episode.item_count)),
        ("summarizer", episode.summarizer),
    ]
    return f"{pairs(rows)}\n\n{flowed(episode.content)}{_details(episode.details)}"


def _details(details: Iterable[Detail]) -> str:
    """A line for each kind, its values once and in order."""
    values: dict[DetailKind, dict[str, None]] = {kind: {} for kind in DetailKind}
    for detail in details:
        values[detail.kind][detail.value] = None
    if not any(values.values()):
        return ""
    indent = " " * 15
    lines = [click.style("Exact details:", bold=True)]
    for kind, kind_values in values.items():
        if kind_values:
            line = textwrap.fill(
                "; ".join(cut(value, LINE_CHARS) for value in kind_values),
                width(),
                initial_indent=f"   {kind.replace('_', ' '):<12}",
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
            lines.append(line)
    return "\n\n" + "\n".join(lines)


def expanded(result: Expanded) -> str:
    """A summary and what it was made of."""
    lines = [_episode(result.episode), ""]
    if result.summaries:
        lines.append(
            click.style("Made of these; mnem expand goes on from each:", bold=True)
        )
    for summary in result.summaries:
        stamp = (
            f"{when(summary.covers_from)} to {when(summary.covers_until)}  {summary.id}"
        )
        lines.append(f"{click.style(stamp, dim=True)}\n{indented(summary.content)}")
    if result.originals:
        lines.append(click.style("Originals, word for word:", bold=True))
    for memory in result.originals:
        who = f"  {memory.role}" if memory.role else ""
        stamp = click.style(f"{when(memory.created_at)}{who}  {memory.id}", dim=True)
        if memory.superseded_at:
            stamp += f"  superseded {_superseded(memory.superseded_at, memory.superseded_by)}"
        if memory.edited_at:
            stamp += f"  edited {_edited(memory)}"
        lines.append(f"{stamp}\n{indented(_words(memory))}")
    return "\n".join(lines)


def preview_lines(result: Foreseen) -> Iterator[str]:
    """The memories of a preview, a paragraph each."""
    for line in result.lines:
        who = "  ".join(filter(None, (line.session, line.role)))
        words = line.snippet or "(its words were pruned)"
        yield wrapped(f"{when(line.created_at)}  {who}: {words}")
    if result.further:
        yield f"   … and {result.further:,} more: --dry-run --after {result.lines[-1].id}"


def edited(result: Edited) -> str:
    """The memories that were edited, or would be."""
    if not result.memories:
        return "no memory matches"
    memories = counted(result.memories, "memory")
    if result.dry_run:
        return "\n".join([f"would edit {memories}", *preview_lines(result)])
    if result.id:
        return f"{result.id} is edited" if result.changed else "nothing was changed"
    return f"{result.changed:,} of {memories} edited"


def on_edited(result: Edited) -> str:
    """Remarks on what else became of the memories."""
    notes = []
    if result.secrets:
        notes.append(f"a secret in it was {result.secrets}")
    if result.restored:
        notes.append(
            f"{counted(result.restored, 'original')} back in working memory; the next sleep "
            "consolidates where it belongs now"
        )
    if result.kept:
        notes.append(
            f"{counted(result.kept, 'original')} left: its summary is all that pruning left"
        )
    return "\n".join(filter(None, [*notes, result.note]))


def tagged(result: Tagged) -> str:
    """The memories that were tagged or untagged, or would be."""
    tags = ", ".join(result.tags)
    memories = counted(result.memories, "memory")
    if not result.memories:
        return "no memory matches"
    if result.dry_run:
        return "\n".join([f"would change {memories}: {tags}", *preview_lines(result)])
    return f"{memories}: {tags} ({result.changed:,} changed)"


def pinned(result: Pinned) -> str:
    """The memories that are pinned now, or no longer."""
    state = "pinned" if result.pinned else "no longer pinned"
    memories = counted(result.memories, "memory")
    if result.dry_run:
        head = f"would be {state}: {memories}"
        return "\n".join([head, *preview_lines(result)])
    if result.id:
        return f"{result.id} is {state}"
    archived = (
        f"; {counted(result.archived, 'archived memory')} cannot be: only working memories can"
        if result.archived
        else ""
    )
    return f"{memories} {state}{archived}"
