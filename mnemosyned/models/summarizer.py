"""Summaries by a language model: prompts, groups split to fit, and the check before one is accepted."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from functools import partial

from mnemosyned.errors import ModelUnavailable, SummarizerFailed
from mnemosyned.instants import in_zone
from mnemosyned.memory.engine_ports import Summarizer, Summary, TextModel
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.extract import (
    CHARS_MAX,
    CHARS_MIN,
    ComposedEpisode,
    Extract,
    ExtractiveSummarizer,
    compose_episode,
    extract,
)
from mnemosyned.summary.grounding import check
from mnemosyned.text import rule_files, sentences
from mnemosyned.text.dates.formatting import annotate_relative_dates, format_day
from mnemosyned.text.frames import neutralize, neutralize_line
from mnemosyned.text.languages.tables import WEEKDAY_ABBREVIATIONS

_WORDS, _NAMES, _PATTERNS, _FORMS = rule_files.read_rule_file(
    __file__,
    "prompts.toml",
    spaced_ends=sentences.SPACED_ENDS,
    unspaced_ends=sentences.UNSPACED_ENDS,
    closing_quotes=sentences.CLOSING_QUOTES,
)

CHARS_PER_WORD = 6
WORDS_MIN = 15
ITEMS_MAX = 12

Message = dict[str, str]

_TEXTS: dict[str, str] = rule_files.read_tables(__file__, "prompts.toml")["texts"]
"""The prompts and their parts."""


def write_summary_request(
    memories: Sequence[MemoryRecord], *, chars_max: int, zone: tzinfo = UTC
) -> list[Message]:
    """Return chat messages that ask for a summary of up to `chars_max` characters, times in `zone`."""
    blocks = "\n".join(
        render_memory(memory, zone=zone)
        for memory in memories
        if memory.content.strip()
    )
    return _write_request(blocks, given="memories", chars_max=chars_max)


def write_combining_request(
    summaries: Sequence[str], *, chars_max: int
) -> list[Message]:
    """Return chat messages that ask to combine partial summaries into up to `chars_max` characters."""
    blocks = "\n".join(
        render_partial_summary(text, at) for at, text in enumerate(summaries, start=1)
    )
    return _write_request(
        f"{_TEXTS['parts']}\n{blocks}", given="summaries", chars_max=chars_max
    )


def write_retry_request(
    messages: Sequence[Message], problems: Sequence[check.SummaryProblem]
) -> list[Message]:
    """Return a request's messages with the problems of the first answer added, but not the answer itself."""
    given = "summaries" if "<summary part=" in messages[-1]["content"] else "memories"
    ungrounded = [
        problem.item for problem in problems if problem.kind in check.UNGROUNDED
    ]
    otherwise = dict.fromkeys(
        _FAULT_WORDS[problem.kind]
        for problem in problems
        if problem.kind not in check.UNGROUNDED
    )
    # Cut short, and with markup made harmless.
    blank = _PATTERNS["attribute"]
    named = [
        f'"{blank.sub(" ", neutralize(item)).strip()[:60]}"'
        for item in ungrounded[:ITEMS_MAX]
    ]
    reasons = []
    if named:
        reasons.append(_TEXTS["ungrounded"].format(given=given, items=", ".join(named)))
    if otherwise:
        reasons.append(_TEXTS["otherwise"].format(items=" and ".join(otherwise)))
    again = _TEXTS["retry"].format(given=given, reason=" Also, ".join(reasons))
    last = messages[-1]
    return [*messages[:-1], {**last, "content": f"{last['content']}\n{again}"}]


def render_memory(memory: MemoryRecord, *, zone: tzinfo = UTC) -> str:
    """Return a memory's text between tags with its time in `zone` and its role.

    Text that looks like a tag is neutralized, so that it cannot end the memory.
    """
    said = in_zone(memory.created_at, zone)
    when = f"{WEEKDAY_ABBREVIATIONS[said.weekday()]} {format_day(said)} {said:%H:%M}"
    role = _PATTERNS["attribute"].sub(" ", neutralize_line(memory.role)).strip()[:40]
    who = f' role="{role}"' if role else ""
    return f'<memory time="{when}"{who}>\n{neutralize(memory.content)}\n</memory>'


def render_partial_summary(text: str, part: int) -> str:
    """Return a partial summary between tags that have its number, `part`."""
    return f'<summary part="{part}">\n{neutralize(text)}\n</summary>'


def _write_request(blocks: str, *, given: str, chars_max: int) -> list[Message]:
    """Return a system and a user message that ask to summarize `blocks`, called `given` in both."""
    words = max(chars_max // CHARS_PER_WORD, WORDS_MIN)
    return [
        {"role": "system", "content": _TEXTS["task"].format(given=given, words=words)},
        {"role": "user", "content": f"{blocks}\n\n{_TEXTS['ask'].format(given=given)}"},
    ]


ROUNDS_MAX = 6
"""Maximum nesting of wrappings: a fence in a preamble in quotation marks."""
PREAMBLE_CHARS_MAX = 160

_PAIRS = dict(zip("\"'“‘«「『„", "\"'”’»」』“", strict=True))
"""Closing quotation marks, by the opening ones."""


def clean_answer(output: str) -> str:
    """Return a model's answer without reasoning, greetings, quotation marks and code fences."""
    text = _PATTERNS["opening"].sub("", output.strip())
    text = _PATTERNS["thought_end"].sub("", _PATTERNS["thought"].sub("", text)).strip()
    text = (
        _PATTERNS["template"]
        .sub("", _PATTERNS["turn"].sub("", _PATTERNS["opening"].sub("", text)))
        .strip()
    )
    for _ in range(ROUNDS_MAX):
        before = text
        text = _unwrap_once(_PATTERNS["closing"].sub("", text).strip())
        if text == before:
            break
    return "\n".join(line.rstrip() for line in text.splitlines())


def trim_to_sentence(text: str) -> str:
    """Return a truncated text up to its last whole sentence; unchanged if half of it would be lost."""
    ends = [match.end() for match in _PATTERNS["sentence_end"].finditer(text)]
    return text[: ends[-1]].rstrip() if ends and ends[-1] > len(text) // 2 else text


def _unwrap_once(text: str) -> str:
    """Return the text without its outermost wrapping: code fence, quotes, preamble or heading."""
    text = _PATTERNS["rule"].sub("", text).strip()
    fence = _PATTERNS["fence"].match(text)
    if fence:
        return fence[1].strip()
    if len(text) > 1 and _PAIRS.get(text[0]) == text[-1]:
        inner = text[1:-1]
        if text[0] not in inner and text[-1] not in inner:  # unlike `"A" and "B"`
            return inner.strip()
    affirmed = _PATTERNS["affirmed"].match(text)
    rest = text[affirmed.end() :] if affirmed else ""
    wrapped = _PATTERNS["preamble"].match(rest) or _PATTERNS["heading"].match(rest)
    if rest and (wrapped or not _PATTERNS["continues"].match(rest)):
        text = rest
    preamble = _PATTERNS["preamble"].match(text)
    if (
        preamble
        and preamble.end() <= PREAMBLE_CHARS_MAX
        and _PATTERNS["itself"].search(preamble[0])
    ):
        return text[preamble.end() :].strip()
    return _PATTERNS["heading"].sub("", text).strip()


CHARS_PER_TOKEN_MAX = 16
"""Characters per token of the window above which a text is too long to be counted."""
EARLY = 4
"""Divisor of the fitting text: no cut is made in the first quarter."""

_SENTENCE = re.compile(
    rf"[{sentences.SPACED_ENDS}]+[{sentences.CLOSING_QUOTES}\]]*\s+"
    rf"|[{sentences.UNSPACED_ENDS}{sentences.HALF_WIDTH_ENDS}]+[{sentences.CLOSING_WIDE}]*|\n+"
)
_SPACE = re.compile(r"\s+")
_JOINERS = "\u200d\ufe0e\ufe0f"


def split_to_fit(
    memories: Iterable[MemoryRecord],
    *,
    count_tokens: Callable[[MemoryRecord], int],
    tokens_max: int,
) -> list[list[MemoryRecord]]:
    """Divide memories into lists of pieces of similar size, each of at most `tokens_max` tokens.

    The order is kept. A memory is split only if it alone exceeds the limit; a piece has at least
    one character. `count_tokens` counts a piece as it is in the prompt.
    """
    tokens_max = max(tokens_max, 1)
    sized = [
        (piece, size)
        for memory in memories
        for piece, size in _split_piece(memory, count_tokens, tokens_max)
    ]
    total = sum(size for _, size in sized)
    # The size of a list if all are alike, so that none is left with a single line.
    fair = -(-total // max(-(-total // tokens_max), 1))
    parts: list[list[MemoryRecord]] = []
    filled = 0
    for piece, size in sized:
        if not parts or filled + size > tokens_max or filled >= fair:
            parts.append([])
            filled = 0
        parts[-1].append(piece)
        filled += size
    return parts


def _split_piece(
    piece: MemoryRecord, count_tokens: Callable[[MemoryRecord], int], tokens_max: int
) -> Iterator[tuple[MemoryRecord, int]]:
    """Yield a piece, or the parts of a piece of more than `tokens_max`, each with a token count."""
    if len(piece.content) <= tokens_max * CHARS_PER_TOKEN_MAX:
        size = count_tokens(piece)
        if size <= tokens_max:
            yield piece, size
            return
    rest = piece.content.strip()

    def count_head(size: int) -> int:
        """Return the number of tokens of the first `size` characters of `rest`."""
        return count_tokens(replace(piece, content=rest[:size]))

    if not rest:
        blank = replace(piece, content="")
        yield blank, count_tokens(blank)
    while rest:
        sizes = range(2, min(len(rest), tokens_max * CHARS_PER_TOKEN_MAX) + 1)
        further = bisect_right(sizes, tokens_max, key=count_head)
        stop = _find_cut_position(rest, 1 + further)
        part = replace(piece, content=rest[:stop].strip())
        yield part, count_tokens(part)
        rest = rest[stop:].lstrip()


def _find_cut_position(text: str, stop: int) -> int:
    """Return where to cut a text, up to index `stop`: after a sentence, or else a word or character."""
    if stop >= len(text):
        return len(text)
    for shape in (_SENTENCE, _SPACE):
        ends = [match.end() for match in shape.finditer(text, stop // EARLY, stop)]
        if ends:
            return ends[-1]
    while stop > 1 and (text[stop] in _JOINERS or unicodedata.combining(text[stop])):
        stop -= 1
    return stop


TEMPERATURE = 0.1
RETRY_TEMPERATURE = 0.0
PROSE_SHARE = 0.6
"""Share of an episode's size that the model is asked for; keywords get the rest."""
PART_SHARE = 0.5
ANSWER_SHARE = 3
"""Divisor of the window that limits the answer."""
CHARS_PER_TOKEN = 3
"""Minimum characters of a token in most languages: a longer answer would be cut short."""
TEMPLATE_TOKENS = 48
"""Tokens that a chat template adds around three turns."""
RETRY_CHARS = " " * 900
"""Room kept free for the request to retry."""
SPARE = 1.1
"""Factor for the tokens of an answer, relative to a part of the prompt of the same length."""
WRAPPING_TOKENS = 32
"""Tokens of an answer for words such as "Here is the summary"."""
ROOM_TOKENS_MIN = 64
PARTS_MAX = 32
"""Maximum parts of a group; more would take a small model most of an hour."""
LEVELS_MAX = 4
PARAMETERS_MIN = 500_000_000
"""Minimum weights of a model that follows instructions; a smaller one continues the conversation."""

_FAULT_WORDS = {
    check.GroundingFault.EMPTY: "empty",
    check.GroundingFault.TOO_LONG: "too long",
    check.GroundingFault.SCRIPT: "not in the language of the input",
    check.GroundingFault.LANGUAGE: "not in the language of the input",
    check.GroundingFault.REPEATED: "repeating itself",
    check.GroundingFault.REFUSED: "not a summary",
    check.GroundingFault.SPEAKER: "in the first person, without a name",
    check.GroundingFault.NEGATION: "denying what the input says, or saying what it denies",
    check.GroundingFault.UNINFORMATIVE: "too vague: it left out names, values and decisions",
}

TOO_MUCH = frozenset((check.GroundingFault.TOO_LONG, check.GroundingFault.REPEATED))
"""Faults of an answer whose first sentences may be a summary."""

Judge = Callable[[str], Sequence[check.SummaryProblem]]


class ModelSummarizer(Summarizer):
    """Summarizer that checks a model's answer, and fails rather than accept an invention.

    A faulty answer is retried once; of a second faulty answer the grounded sentences are kept. The
    index terms make an episode findable by at least the words of an extractive summary.
    """

    def __init__(
        self,
        *,
        model: TextModel,
        ratio: float,
        find_zone: Callable[[], tzinfo],
        max_tokens: int,
    ) -> None:
        self.name = model.name
        self.reason = f"{model.name} is configured; its summaries are checked against their sources"
        self.accepted = 0
        """Groups whose summary was accepted."""
        self.retried = 0
        """Answers that were rejected and retried."""
        self.rejected = 0
        """Groups whose summary was rejected twice."""
        self._model = model
        self._ratio = ratio
        self.find_zone = find_zone
        """Returns the time zone in which the memories' times and dates are read."""
        self._max_tokens = max_tokens

    def summarize(self, memories: Sequence[MemoryRecord]) -> Summary:
        """Return the model's summary of memories, checked, with index terms for words missing from it.

        Memories too short to be shortened get an extractive summary. Raises `SummarizerFailed` if
        no answer is acceptable, or `ModelUnavailable` if the model is too small for instructions.
        """
        size = sum(len(memory.content) for memory in memories)
        kept = extract(memories, ratio=self._ratio, zone=self.find_zone())
        if not kept.text:
            raise SummarizerFailed(
                "the memories contain no text; leave them as they are"
            )
        budget = min(max(int(size * self._ratio), CHARS_MIN), CHARS_MAX)
        if size <= budget:  # too short to be shortened: no model need be asked
            return ExtractiveSummarizer(
                ratio=self._ratio, zone=self.find_zone()
            ).summarize(memories)
        if 0 < self._model.parameters < PARAMETERS_MIN:  # 0 if unknown
            raise ModelUnavailable(
                f"{self.name} has fewer than {PARAMETERS_MIN / 1e6:.0f} million weights, too few "
                "to follow instructions; choose a larger model (mnem model list)"
            )
        readable = [memory for memory in memories if memory.content.strip()]
        composed = _GroupSummarizer(self, readable, kept, budget).compose()
        self.accepted += 1
        return Summary(
            text=composed.text,
            index_terms=composed.index_terms,
            summarizer=self.name,
            model_share=1.0,
        )

    def ask_model(
        self,
        messages: Sequence[Message],
        judge: Judge,
        sources: Sequence[MemoryRecord],
        *,
        chars_max: int,
    ) -> str:
        """Return the model's answer if `judge` finds no problem, or else its answer to a retry.

        An answer that repeats itself or is longer than `chars_max` is shortened to its first sentences. If
        both answers have problems, return the sentences of the retry, or else of the first answer,
        that `sources` confirm. Raises `SummarizerFailed` if none are left.
        """
        answers: list[str] = []
        asked, temperature = messages, TEMPERATURE
        while True:
            text = self._complete_answer(asked, temperature, chars_max)
            if not (problems := judge(text)):
                return text
            if TOO_MUCH.issuperset(problem.kind for problem in problems):
                short = check.shorten_answer(text, chars_max)
                if not judge(short):
                    return short
            answers.insert(0, text)
            if len(answers) > 1:
                break
            self.retried += 1
            asked = write_retry_request(messages, problems)
            temperature = RETRY_TEMPERATURE
        for answer in answers:
            salvaged = check.select_grounded_sentences(
                answer, judge, sources, chars_max=chars_max
            )
            if salvaged and not judge(salvaged):
                return salvaged
        self.rejected += 1
        kinds = ", ".join(dict.fromkeys(str(problem.kind) for problem in problems))
        raise SummarizerFailed(f"the summary of {self.name} was refused twice: {kinds}")

    def count_room_tokens(self, messages: Sequence[Message]) -> int:
        """Return how many tokens of the context window are left for memories in a request.

        Its other words, the answer and a retry are subtracted. Raises `SummarizerFailed` if too few are left.
        """
        frame = "\n".join([message["content"] for message in messages]) + RETRY_CHARS
        taken = self._model.count_tokens(frame) + TEMPLATE_TOKENS + self.answer_tokens
        room = self._model.context_tokens - taken
        if room < ROOM_TOKENS_MIN:
            raise SummarizerFailed(
                f"the context window of {self.name} is too small for any memory; raise llm.context_tokens"
            )
        return room

    @property
    def answer_tokens(self) -> int:
        """Maximum number of tokens of a model's answer."""
        return max(min(self._max_tokens, self._model.context_tokens // ANSWER_SHARE), 1)

    def count_line_tokens(self, text: str) -> int:
        """Return the number of tokens of a text and the line break after it."""
        return self._model.count_tokens(text) + 1

    def _complete_answer(
        self, messages: Sequence[Message], temperature: float, chars_max: int
    ) -> str:
        """Return the model's answer without wrappings, cut after a sentence if it was truncated.

        A model in a file, which does not think first, gets tokens for little more than `chars_max` characters.
        """
        limit = self.answer_tokens
        if self._model.parameters:
            asked = messages[-1]["content"]
            share = self._model.count_tokens(asked) / len(asked)
            limit = min(limit, int(chars_max * share * SPARE) + WRAPPING_TOKENS)
        text = clean_answer(
            self._model.complete(messages, max_tokens=limit, temperature=temperature)
        )
        cut = len(text) > limit and self._model.count_tokens(text) >= limit - 1
        return trim_to_sentence(text) if cut else text


@dataclass(eq=False, repr=False)  # the memories are a person's
class _GroupSummarizer:
    """Summarizer of one group, in one context window or in several."""

    by: ModelSummarizer
    memories: Sequence[MemoryRecord]
    extract: Extract
    budget: int

    def __post_init__(self) -> None:
        self._asked = min(
            int(self.budget * PROSE_SHARE), self.by.answer_tokens * CHARS_PER_TOKEN
        )

    def compose(self) -> ComposedEpisode:
        """Return the group's episode, made in parts if the window is too small. Raises `SummarizerFailed`."""
        zone = self.by.find_zone()
        ask = partial(write_summary_request, chars_max=self._asked, zone=zone)
        found = split_to_fit(
            self.memories,
            count_tokens=lambda piece: self.by.count_line_tokens(
                render_memory(piece, zone=zone)
            ),
            tokens_max=self.by.count_room_tokens(ask([])),
        )
        if len(found) > PARTS_MAX:
            raise SummarizerFailed(
                f"the memories fill {len(found)} context windows of {self.by.name}, more than {PARTS_MAX}"
            )
        if len(found) == 1:
            return self._ask_for_episode(ask(found[0]))
        return self._combine([self._summarize_part(part) for part in found])

    def _ask_for_episode(self, messages: Sequence[Message]) -> ComposedEpisode:
        """Ask the model for the final text; return the episode with the checked text and index terms."""
        answer = self.by.ask_model(
            messages, self._check_final, self.memories, chars_max=self.budget
        )
        return self._compose_episode(answer)

    def _summarize_part(self, part: Sequence[MemoryRecord]) -> str:
        """Return the model's summary of the pieces in one window; join short pieces without the model."""
        size = sum(len(piece.content) for piece in part)
        if size <= CHARS_MIN:
            return "\n".join(piece.content for piece in part)
        write = partial(write_summary_request, part, zone=self.by.find_zone())
        return self._ask_for_part(write, part, size)

    def _ask_for_part(
        self,
        write: Callable[..., list[Message]],
        sources: Sequence[MemoryRecord],
        size: int,
    ) -> str:
        """Return a checked summary of about half of `size` characters; `write` makes the request."""
        chars = min(int(size * PART_SHARE), self.by.answer_tokens * CHARS_PER_TOKEN)
        judge = partial(self._check_grounding, sources=sources, chars_max=size)
        request = write(chars_max=chars)
        return self.by.ask_model(request, judge, sources, chars_max=size)

    def _combine(self, summaries: list[str]) -> ComposedEpisode:
        """Return the episode of a group, its partial summaries combined in steps until one is left.

        Raises `SummarizerFailed` if a step does not reduce their number.
        """
        ask = partial(write_combining_request, chars_max=self._asked)
        room = self.by.count_room_tokens(ask([]))
        for _ in range(LEVELS_MAX):
            found = self._split_windows(summaries, room)
            if len(found) == 1:
                return self._ask_for_episode(ask(found[0]))
            if len(found) >= len(summaries):
                break
            summaries = [
                self._ask_for_part(
                    partial(write_combining_request, window),
                    self.memories,
                    sum(map(len, window)),
                )
                for window in found
            ]
        raise SummarizerFailed(
            f"the summaries of {self.by.name} do not fit into its context window"
        )

    def _split_windows(self, summaries: Sequence[str], room: int) -> list[list[str]]:
        """Split the partial summaries into lists that each fit into `room` tokens, in order."""
        first = self.memories[0]
        numbered = [
            MemoryRecord(id=str(at), content=text, created_at=first.created_at)
            for at, text in enumerate(summaries, start=1)
        ]
        found = split_to_fit(
            numbered,
            count_tokens=lambda piece: self.by.count_line_tokens(
                render_partial_summary(piece.content, len(summaries))
            ),
            tokens_max=room,
        )
        return [[piece.content for piece in part] for part in found]

    def _check_grounding(
        self, text: str, *, sources: Sequence[MemoryRecord], chars_max: int
    ) -> Sequence[check.SummaryProblem]:
        """Return the problems of an answer: more than `chars_max` characters, or unlike its sources."""
        return check.check_grounding(
            text, sources, chars_max=chars_max, zone=self.by.find_zone()
        )

    def _check_final(self, text: str) -> Sequence[check.SummaryProblem]:
        """Return the problems of the group's final summary, including that it says too little."""
        problems = self._check_grounding(
            text, sources=self.memories, chars_max=self.budget
        )
        if problems or self._compose_episode(text).informative:
            return problems
        return (check.SummaryProblem(check.GroundingFault.UNINFORMATIVE, ""),)

    def _compose_episode(self, prose: str) -> ComposedEpisode:
        """Return the model's text with index terms for words of the memories missing from it.

        Relative dates get the date that they mean, if all memories are of one day.
        """
        zone = self.by.find_zone()
        said = [in_zone(memory.created_at, zone) for memory in self.memories]
        if len({when.date() for when in said}) == 1:
            prose = annotate_relative_dates(prose, said[0])
        return compose_episode(
            self.memories,
            prose.splitlines(),
            extract=self.extract,
            zone=zone,
        )
