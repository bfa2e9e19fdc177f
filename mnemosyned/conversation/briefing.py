"""Statements for briefings: which sentences of a project an agent has to know at its start."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from math import ceil
from typing import NamedTuple

from mnemosyned.conversation.agreements import (
    MESSAGE_CHARS_MAX,
    AnsweredProposal,
    AnswerKind,
    read_answer,
)
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.statements import is_courtesy, remove_farewell, remove_pasted
from mnemosyned.text import rule_files, terms, word_cache
from mnemosyned.text.frames import neutralize_line
from mnemosyned.text.secrets.masking import PLACEHOLDER, mask_secrets
from mnemosyned.text.sentences import (
    contains_statement,
    is_question,
    split_sentences,
)
from mnemosyned.text.tokens import (
    COMMONPLACE_KINDS,
    EXACT_KINDS,
    RULING,
    TextToken,
    TokenKind,
    emphasis_factor,
    find_keywords,
    tokenize,
)

_WORDS, _NAMES, _PATTERNS, _FORMS = rule_files.read_rule_file(__file__)

ASSISTANT = "assistant"
CONTENT_CHARS_MAX = 2_000
"""Characters read of one memory."""
STATEMENTS_CACHED_MAX = 4_000
"""Number of cached readings: more than one start reads, or no start would find its own again."""
STATEMENT_CHARS_MAX = 240
SENTENCE_CHARS_MAX = 400
KEYWORDS_MIN = 3
"""Minimum keywords of a sentence that makes sense alone; with an exact value, one is enough."""
CONTENT_WORDS_MIN = 5
"""Minimum words, except stop words, of such a sentence."""
SECRET_KEYWORDS_MIN = 3
"""Keywords besides a secret, without which a sentence is mainly that secret."""
ANSWER_CHARS_MAX = 120
"""Length up to which a reply is shown with the question that it answers."""
SAME_SHARE = 0.6
"""Share of its words in a newer statement from which an older statement is a repetition."""


class StatementKind(StrEnum):
    """Kind of a statement, by which it matters to a later session."""

    GRAVE = "grave"
    OPEN = "open"
    DECIDED = "decided"
    FOUND = "found"
    STATED = "stated"


@dataclass(frozen=True, slots=True)
class ProjectStatement:
    """A statement of one memory that is useful to a later session."""

    memory: MemoryRecord
    kind: StatementKind
    text: str
    keywords: frozenset[str]
    """Stems of its words, for comparison with other statements."""
    answer_id: str = ""
    """Of an agent's proposal: the id of the memory in which a person agrees to it or declines it."""


def is_sample(text: str) -> bool:
    """Return True if a text is one of the examples in our documentation, which newcomers type."""
    return _normalize(text) in _SAMPLES


def _normalize(text: str) -> str:
    """Return a text for comparison: lower case, single spaces, no full stop at the end."""
    return " ".join(text.lower().split()).rstrip(".")


_SAMPLES = frozenset(map(_normalize, _NAMES["samples"]))


def has_substance(text: str) -> bool:
    """Return whether a text has a sentence that may matter later and makes sense alone.

    Questions, greetings, requests, feelings, hypotheses, test results and secrets do not count.
    """
    return any(telling for *_, telling in _find_useful_sentences(text, is_agent=False))


_Reading = tuple[StatementKind, str, frozenset[str]]
"""Kind, text and keywords of a memory's statement."""


class AnsweredMemory(NamedTuple):
    """An agent's memory with a proposal, and a person's memory that answers it."""

    asked: MemoryRecord
    answer: MemoryRecord
    proposal: AnsweredProposal
    topic: MemoryRecord | None
    """The person's message before the proposal."""


def _follow_sessions(
    memories: Sequence[MemoryRecord],
) -> Iterator[tuple[MemoryRecord, MemoryRecord | None, MemoryRecord | None]]:
    """Yield (memory, its session's last memory, its session's last one of a person), the oldest first.

    The second and third are from before the memory, and None if there is none.
    """
    before: dict[str, MemoryRecord] = {}
    asking: dict[str, MemoryRecord] = {}
    for memory in reversed(memories):
        yield memory, before.get(memory.session), asking.get(memory.session)
        before[memory.session] = memory
        if memory.role != ASSISTANT:
            asking[memory.session] = memory


def find_answers(memories: Sequence[MemoryRecord]) -> Iterator[AnsweredMemory]:
    """Yield the agents' proposals that a person answered directly, of memories that come newest first."""
    for memory, asked, topic in _follow_sessions(memories):
        if asked and asked.role == ASSISTANT and memory.role not in ("", ASSISTANT):
            proposal = read_answer(
                asked.content[-MESSAGE_CHARS_MAX:], memory.content[:CONTENT_CHARS_MAX]
            )
            if proposal and not asked.superseded_at and not memory.superseded_at:
                yield AnsweredMemory(asked, memory, proposal, topic)


def find_statements(
    memories: Sequence[MemoryRecord], *, with_declined: bool = False
) -> Iterator[ProjectStatement]:
    """Yield at most one statement for each memory of a project, in the order of the memories.

    `memories` come newest first; superseded ones are skipped. Agents' statements are yielded only if about
    failures, open tasks or findings; a finding may follow the user's words before it. A short reply
    is preceded by the question that it answers. A proposal to which a person agreed is a decision of both,
    in place of the answer; one that was refused or put off is a statement only `with_declined`.
    """
    questions: dict[str, str] = {}
    """By the ids of memories that directly follow a question of another speaker in their session."""
    solved: dict[str, _Reading | None] = {}
    """By id, messages of users with what an agent found out; None for the agent's memory."""
    answers = {each.answer.id: each for each in find_answers(memories)}
    proposals = {each.asked.id: each.proposal for each in answers.values()}

    def read(memory: MemoryRecord) -> _Reading | None:
        """Return the statement of a memory, apart from its proposal that was answered."""
        proposal = proposals.get(memory.id)
        return _read_memory(
            replace(memory, content=memory.content.replace(proposal.sentence, " "))
            if proposal
            else memory
        )

    for memory, asked, user in _follow_sessions(memories):
        if asked and asked.role != memory.role and is_question(asked.content):
            *_, (sentence, _) = split_sentences(asked.content[-CONTENT_CHARS_MAX:])
            words = {token.surface.lower() for token in tokenize(sentence)}
            is_asking = words & _WORDS["asking"] and terms.stems_with_content(sentence)
            if len(sentence) <= STATEMENT_CHARS_MAX and is_asking:
                questions[memory.id] = sentence.strip()
        if memory.role == ASSISTANT and user and user.id not in solved:
            found = read(memory)
            if found is None or found[0] is not StatementKind.FOUND:
                continue
            is_answer = asked is user or is_question(user.content)
            if is_answer and (problem := _quote_problem(user)):
                text = f"{problem} → {found[1]}"
                kind = _find_kind(text, tokenize(text), is_agent=True)
                solved[user.id] = kind, text, find_keywords(text)
                solved[memory.id] = None
    told = {
        each.asked.id
        for each in answers.values()
        if with_declined or each.proposal.kind is AnswerKind.AGREED
    }
    for memory in memories:
        if memory.superseded_at or memory.id in told:
            continue
        rest = memory
        answered = answers.get(memory.id)
        if answered and answered.asked.id in told:
            asked = answered.asked
            yield _tell_proposal(
                answered,
                solved[asked.id] if asked.id in solved else read(asked),
                with_declined=with_declined,
            )
            _, *others = split_sentences(memory.content)
            rest = replace(memory, content=" ".join(text for text, _ in others))
        found = solved[memory.id] if memory.id in solved else read(rest)
        if found is None:
            continue
        kind, text, keywords = found
        question = "" if answered else questions.get(memory.id)
        if len(text) <= ANSWER_CHARS_MAX and question:
            text = f"{question} → {text}"
            keywords = find_keywords(text)
        elif text.isascii() and " " not in text:
            continue  # a number or a name that nobody asked for
        yield ProjectStatement(memory, kind, text, keywords)


def _tell_proposal(
    answered: AnsweredMemory, found: _Reading | None, *, with_declined: bool
) -> ProjectStatement:
    """Return a proposal, its answer and the statement `found` with it as one statement of both people.

    With `with_declined`, another proposal of the message that was refused follows.
    """
    asked, answer, proposal, topic = answered
    text = proposal.text
    if proposal.about and not (found and proposal.about in found[1]):
        text = neutralize_line(f"{proposal.about.rstrip('.')} → {text}")
    if with_declined and proposal.refused:
        text = neutralize_line(f"{text}. {proposal.refused}")
    if proposal.is_option and topic and (problem := _quote_problem(topic)):
        text = f"{problem} → {text}"
    if found:
        text = f"{text}. {found[1]}"
    agreed = proposal.kind is AnswerKind.AGREED
    return ProjectStatement(
        memory=replace(
            asked,
            role=f"{asked.role} and {answer.role}",
            created_at=answer.created_at,
        ),
        kind=StatementKind.DECIDED if agreed else StatementKind.STATED,
        text=text,
        keywords=find_keywords(text),
        answer_id=answer.id,
    )


def _quote_problem(memory: MemoryRecord) -> str:
    """Return a short statement or question of a user that a finding may answer, or ""."""
    read = _read_memory(memory)
    if read:
        text = read[1] if read[0] in (StatementKind.STATED, StatementKind.GRAVE) else ""
    else:
        text = neutralize_line(memory.content) if is_question(memory.content) else ""
    return text if len(text) <= ANSWER_CHARS_MAX else ""


def _read_memory(memory: MemoryRecord) -> _Reading | None:
    """Return the statement of a memory, or None if it has none worth showing."""
    is_agent = memory.role == ASSISTANT
    return _read_statement(memory.content[:CONTENT_CHARS_MAX], is_agent=is_agent)


@word_cache.clear_on_forget
@lru_cache(STATEMENTS_CACHED_MAX)
def _read_statement(content: str, *, is_agent: bool) -> _Reading | None:
    """Return the statement of a memory; None if it has none worth showing.

    An agent's statement is worth showing only if it is about a failure, an open task or a finding. The result
    is cached, since it takes a tenth of a millisecond and is needed for every prompt.
    """
    if is_sample(content):
        return None
    sentences = list(_find_useful_sentences(content, is_agent=is_agent))
    together = find_keywords(" ".join(text for text, *_ in sentences))
    is_telling = len(sentences) > 1 and len(together) >= KEYWORDS_MIN
    kinds = [
        _find_kind(text, tokens, is_agent=is_agent)
        for text, tokens, telling in sentences
        if telling or is_telling
    ]
    kind = max(kinds, key=_GRAVITY.index, default=None)
    if kind is None or (
        is_agent and kind in (StatementKind.STATED, StatementKind.DECIDED)
    ):
        return None
    text = _join_sentences([text for text, *_ in sentences], kind)
    return kind, text, find_keywords(text)


_GRAVITY = (
    StatementKind.STATED,
    StatementKind.FOUND,
    StatementKind.DECIDED,
    StatementKind.OPEN,
    StatementKind.GRAVE,
)


def _find_useful_sentences(
    content: str, *, is_agent: bool
) -> Iterator[tuple[str, tuple[TextToken, ...], bool]]:
    """Yield (sentence, tokens, makes sense alone) for sentences of a memory that may matter later.

    Left out are questions, greetings, requests for work, feelings, hypotheses, results of tests, pasted lines,
    long sentences, and those mainly about a secret. `is_agent` is True for an agent's memory.
    """
    has_secret = PLACEHOLDER.search(mask_secrets(content)) is not None
    for sentence, _ in split_sentences(remove_pasted(content)):
        text = remove_farewell(sentence.strip())
        if is_question(text) or text.endswith(":") or len(text) > SENTENCE_CHARS_MAX:
            continue
        tokens = tokenize(
            PLACEHOLDER.sub(" ", mask_secrets(text)) if has_secret else text
        )
        words = [token.surface.lower() for token in tokens]
        if not words or is_courtesy(words):
            continue
        keywords = {
            token.stem for token in tokens if token.kind not in COMMONPLACE_KINDS
        }
        has_value = any(token.kind in EXACT_KINDS for token in tokens)
        is_named = has_value or any(token.capital for token in tokens[1:])
        full_words = sum(token.kind is not TokenKind.STOP for token in tokens)
        is_telling = (
            len(keywords) >= KEYWORDS_MIN - terms.may_be_unspaced(text)
            or full_words >= CONTENT_WORDS_MIN
            or bool(
                (keywords and is_named and not has_secret)
                and (has_value or _PATTERNS["change"].search(text))
            )
            or bool(
                (done := _PATTERNS["done"].search(text))
                and keywords - find_keywords(done[0])
            )
        )
        if has_secret:
            telling = [word for word in words if word not in _WORDS["secret_talk"]]
            stems = {token.stem for word in telling for token in tokenize(word)}
            if len(keywords & stems) < SECRET_KEYWORDS_MIN:
                continue  # few are about anything but the secret
        if (
            not has_value
            and _WORDS["feelings"].intersection(words)
            and _WORDS["first_person"].intersection(words)
        ):
            continue
        if any(_PATTERNS[name].search(text) for name in ("test_result", "hypothesis")):
            continue
        ruling = [
            word for word in tokens if word.surface.lower() not in _WORDS["objects"]
        ]
        if is_request(text, tokens) and (is_agent or emphasis_factor(ruling) < RULING):
            continue
        yield text, tokens, is_telling


def is_request(text: str, tokens: Sequence[TextToken]) -> bool:
    """Return True if a sentence with these tokens begins as a request, such as "open the file"."""
    words = [token.surface.lower() for token in tokens]
    verb = words[min(len(words) - 1, words[0] in _WORDS["proposals"])]
    return (
        (verb in _WORDS["requests"] and not _PATTERNS["headed"].search(text))
        or not _WORDS["courtesies"].isdisjoint((words[0], words[-1]))
        or _PATTERNS["asked"].search(text) is not None
    )


def _find_kind(
    text: str, tokens: Sequence[TextToken], *, is_agent: bool
) -> StatementKind:
    """Return the kind of a sentence, such as an open task or a user's decision."""
    if _PATTERNS["grave"].search(text):
        return StatementKind.GRAVE
    if _PATTERNS["open"].search(text):
        return StatementKind.OPEN
    if is_agent:
        found = _PATTERNS["found"].search(text)
        return StatementKind.FOUND if found else StatementKind.STATED
    if _PATTERNS["decided"].search(text) or emphasis_factor(tokens) >= RULING:
        return StatementKind.DECIDED
    return StatementKind.STATED


def _join_sentences(sentences: Sequence[str], kind: StatementKind) -> str:
    """Return the sentences of one memory as a line of at most `STATEMENT_CHARS_MAX` characters.

    Sentences that do not fit are left out, those of another kind than `kind` first. A single longer sentence
    stays whole.
    """
    if len(" ".join(sentences)) <= STATEMENT_CHARS_MAX:
        return neutralize_line(" ".join(sentences))
    chosen: list[str] = []
    room = STATEMENT_CHARS_MAX

    by_agent = kind is StatementKind.FOUND
    for text in sorted(
        sentences,
        key=lambda text: _find_kind(text, tokenize(text), is_agent=by_agent) != kind,
    ):
        if len(text) + 1 <= room or not chosen:
            chosen.append(text)
            room -= len(text) + 1
    return neutralize_line(" ".join(sorted(chosen, key=sentences.index)))


def says_more(text: str, known: str) -> bool:
    """Return True if the text `known` has less than `SAME_SHARE` of a text's keywords."""
    words = find_keywords(text)
    return len(words & find_keywords(known)) < SAME_SHARE * len(words)


def leave_out_rules(rules: Sequence[str], text: str, message: str) -> str:
    """Return a message's `text` as one line, without the sentences that state these rules.

    The result is empty if the rest says too little, if a rule was edited so that it no longer occurs in the
    message, or if the message may be about a secret, which could be in the rest.
    """
    words = {token.surface.lower() for token in tokenize(message)}
    is_about_secret = not words.isdisjoint(_WORDS["secret_talk"])
    if is_about_secret or not all(contains_statement(message, rule) for rule in rules):
        return ""
    rest = " ".join(
        sentence
        for sentence, _ in split_sentences(text)
        if all(says_more(sentence, rule) for rule in rules)
    )
    return rest if has_substance(rest) else ""


def drop_repetitions(
    statements: Sequence[ProjectStatement], *, known: Iterable[frozenset[str]] = ()
) -> Iterator[ProjectStatement]:
    """Yield the statements without repetitions and outdated readings, such as "pulse 64" if it is 61 now.

    A repetition has most of its keywords in one newer or `known` statement; `statements` come newest first.
    Only statements with a common rare word are compared (prefix filtering: Chaudhuri et al., "A primitive
    operator for similarity joins in data cleaning", 2006).
    """
    counts = Counter(word for each in statements for word in each.keywords)
    seen_by_word: dict[str, list[frozenset[str]]] = defaultdict(list)
    readings: set[str] = set()

    def add(words: frozenset[str]) -> None:
        for word in words:
            seen_by_word[word].append(words)

    for words in known:
        add(words)
    for statement in statements:
        words = statement.keywords
        named = [word for word in words if not word[0].isdigit()]
        if len(named) == 1 < len(words):
            if named[0] in readings:
                continue
            readings.add(named[0])
        needed = ceil(SAME_SHARE * len(words))
        rarest = sorted(words, key=lambda word: (counts[word], word))
        near = (
            other
            for word in rarest[: len(words) - needed + 1]
            for other in seen_by_word[word]
        )
        if not any(len(words & other) >= needed for other in near):
            add(words)
            yield statement
