"""Statements: the sentences of a group of memories, whether each makes sense alone or reports an event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from functools import reduce
from math import exp
from operator import or_
from typing import NamedTuple

from mnemosyned.instants import in_zone
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.keywords import Vocabulary
from mnemosyned.summary.records.lines import RecordLine
from mnemosyned.text import sentences, tokens, word_cache
from mnemosyned.text.dates import formatting
from mnemosyned.text.endings.statements import read_statements
from mnemosyned.text.languages import tables
from mnemosyned.text.rule_files import read_rule_file, read_tables
from mnemosyned.text.secrets.masking import PLACEHOLDER

_EVENT_RULES = read_rule_file(__file__, "events.toml", month="|".join(tables.MONTHS))
_EVENT_WORDS, _EVENT_PATTERNS = _EVENT_RULES.words, _EVENT_RULES.patterns
_POINTS: dict[str, float] = read_tables(__file__, "events.toml")["points"]
_PAST_ENDINGS = tuple(sorted(_EVENT_WORDS["past_endings"]))
_MARKS = {
    name: 1 << place
    for place, name in enumerate((*_EVENT_WORDS, "past", "gerund", "digit", "capital"))
}
"""Bit of each list of words, and of four forms of a word."""
_WORD_EDGE = "\"'“”„«»()[]*_.,;:!?…"
PAST_CHARS_MIN = 4
SUBJECT_WORDS = 4
"""Words of a sentence among which its subject is sought."""
EARLY_WORDS = 6
"""Number of first words in which a pronoun refers to something unnamed."""
SHORT_WORDS = 6
LONG_WORDS = 30
FEELINGS_MAX = 3
STRENGTH = 0.5
"""Exponent of the odds: how strongly events are preferred to sentences with more names and values."""
_BY_WORD = tuple(
    (mark, _POINTS[name]) for name, mark in _MARKS.items() if name in _POINTS
)
"""Points of a sentence with a word of a list."""
_DONE = _MARKS["deeds"] | _MARKS["past"]
_PERSONAL = _MARKS["listener"] | _MARKS["feelings"]
_HAPPENING = _MARKS["beginnings"] | _MARKS["plans"]


def _compute_word_marks(chunk: str) -> int:
    """Return a bit mask of the lists of words, and the forms such as the past, that include a word."""
    word = chunk.strip(_WORD_EDGE).lower()
    marks = sum(_MARKS[name] for name, words in _EVENT_WORDS.items() if word in words)
    is_past = word.endswith(_PAST_ENDINGS) and len(word) >= PAST_CHARS_MIN
    if is_past and word not in _EVENT_WORDS["no_deeds"]:
        marks |= _MARKS["past"]
    if word.endswith("ing"):
        marks |= _MARKS["gerund"]
    if any(map(str.isdigit, word)):
        marks |= _MARKS["digit"]
    if chunk.lstrip(_WORD_EDGE)[:1].isupper() and word not in _EVENT_WORDS["self"]:
        marks |= _MARKS["capital"]
    return marks


_WORD_MARKS = word_cache.WordCache(_compute_word_marks, entries_max=1 << 13)


def rate_event(
    sentence: str,
    *,
    is_ruling: bool = False,
    is_introduced: bool = False,
    is_message: bool = False,
) -> float:
    """Return a factor for a sentence's worth: above 1 for an event, below 1 for anything else.

    Feelings, advice, compliments, questions, early pronouns and a first letter in lower case lower the
    factor. `is_introduced` says to ignore pronouns, and `is_message` to ignore lower case. A decision or rule
    (`is_ruling`) has at least 1, unless it encourages or praises; a text without words has 0.
    """
    sentence = remove_farewell(sentence.replace("’", "'"))
    marks = [_WORD_MARKS[word] for word in sentence.split()]
    if not marks:
        return 0.0
    union, first = reduce(or_, marks), marks[0]
    is_advice = bool(first & _MARKS["advice"]) or _matches(
        "encouragement", sentence, union, "refusals"
    )
    is_echo = bool(first & _MARKS["echoes"]) or not any(map(str.isalnum, sentence[:2]))
    early = reduce(or_, marks[:EARLY_WORDS])
    features = {
        "base": 1,
        "length": min(len(marks), LONG_WORDS) / LONG_WORDS,
        "advice_given": is_advice,
        "reference": early & _MARKS["references"] and not is_introduced,
        "echo": is_echo,
        "gerund_first": first & _MARKS["gerund"] and not is_echo,
        "fragment": sentence[0].islower() and not is_message,
        "short": len(marks) < SHORT_WORDS
        and sentence.isascii()
        and not (union & _MARKS["beginnings"] and union & _MARKS["self"]),
        "question": sentences.is_question(sentence),
        **_measure_event_features(sentence, marks, union),
    }
    score = sum(_POINTS[name] * value for name, value in features.items() if value)
    score += sum([points for mark, points in _BY_WORD if union & mark])
    if is_ruling and not is_advice and not union & _PERSONAL:
        score = max(score, 0.0)
    return exp(STRENGTH * score)


def _measure_event_features(
    sentence: str, marks: list[int], union: int
) -> dict[str, float]:
    """Return {name: value} of the features by which a sentence reports an event: a deed, a time, a feeling.

    `marks` has the bit mask of each word, and `union` all their bits.
    """
    is_own = bool(reduce(or_, marks[:SUBJECT_WORDS]) & _MARKS["self"])
    is_done = bool(union & _DONE) or _reports_foreign_deed(sentence, union)
    is_timed = bool(union & _MARKS["times"]) or _matches(
        "dated", sentence, union, "digit"
    )
    is_ongoing = _matches("ongoing", sentence, union, "gerund")
    felt = sum(bool(mark & _MARKS["feelings"]) for mark in marks)
    happens = is_done or is_timed or is_ongoing or union & _HAPPENING
    return {
        "deed": is_done,
        "own_deed": is_done and is_own,
        "own": is_own,
        "timed": is_timed,
        "ongoing_deed": is_ongoing,
        "headline": bool(marks[0] & _DONE),
        "name": '"' in sentence or any(mark & _MARKS["capital"] for mark in marks[1:]),
        "turn_to_news": _matches("news", sentence, union, "news"),
        "looking": _matches("looking", sentence, union, "looks"),
        "attitude": _matches("attitude", sentence, union, "attitudes"),
        "feeling": min(felt, FEELINGS_MAX),
        "felt_state": felt > 0 and not happens,
    }


def _matches(pattern: str, sentence: str, union: int, hint: str) -> bool:
    """Return True if a sentence has a word of the list `hint` and matches the pattern named `pattern`."""
    return bool(union & _MARKS[hint] and _EVENT_PATTERNS[pattern].search(sentence))


def _reports_foreign_deed(sentence: str, union: int) -> bool:
    """Return True if a sentence has a perfect or past tense of a language other than English."""
    if union & _MARKS["have"] and any(
        map(_EVENT_PATTERNS["participle"].fullmatch, sentence.lower().split())
    ):
        return True
    if _EVENT_PATTERNS["perfect"].search(sentence):
        return True
    return not sentence.isascii() and bool(
        _EVENT_PATTERNS["unspaced_past"].search(sentence)
    )


_WORDS, _NAMES, _PATTERNS, _FORMS = read_rule_file(__file__)

COURTESY_WORDS_MAX = 7
"""Words of the longest sentence that is nothing but a greeting, thanks or applause."""
OPENERS_MAX = 3
_EDGE = "\"'“”‘’«»„([*_—–-…¿¡"


def _find_languages(*fields: str) -> dict[str, set[str]]:
    """Return {word: codes of the languages that have it in one of these fields}."""
    found = defaultdict[str, set[str]](set)
    for language in tables.LANGUAGES:
        for word in " ".join([getattr(language, field) for field in fields]).split():
            found[word].add(language.code)
    return found


CONNECTIVES = frozenset(_find_languages("connectives"))
OPENERS = CONNECTIVES.union(_find_languages("openers"))
COURTESIES = frozenset(_find_languages("courtesies"))
_LEANING = _find_languages("backward_heads", "connectives")
_ORDINARY = _find_languages("stop_words", "question_stop_words")


def _leans_back(word: str, rest: str) -> bool:
    """Return True if `word` at the start of a sentence, before `rest`, refers to the sentence before.

    The stop words of `rest` decide if `word` is an ordinary one in another language: French "il" is an Italian
    article, and Dutch "en" a Spanish preposition. Without stop words, only a German word refers back.
    """
    leaning = _LEANING.get(word, set())
    ordinary = _ORDINARY.get(word, set()) - leaning
    if not (leaning and ordinary) or "en" in leaning:
        return bool(leaning)
    counts = tables.count_stop_words(rest)
    ours, theirs = (
        max(counts.get(code, 0.0) for code in codes) for codes in (leaning, ordinary)
    )
    return ours > theirs or (ours == theirs and "de" in leaning)


def refers_back(sentence: str) -> bool:
    """Return True if a sentence begins with a reference to the sentence before, such as "That"."""
    head, _, rest = sentence.partition(" ")
    word = head.strip(_EDGE).rstrip(",.;:!?").lower()
    if not word.isalpha():
        word = word.replace("’", "'").replace("`", "'")
    if not _leans_back(word, rest):
        return False
    following = rest.partition(" ")[0].strip(",.;:!?").lower()
    return following not in _WORDS["time_nouns"]


def remove_opener(sentence: str) -> str:
    """Return a sentence without the interjections and connectives at its start, capitalized.

    "Well, but the invoice is paid." becomes "The invoice is paid.".
    """
    for _ in range(OPENERS_MAX):
        if lead := _PATTERNS["lead"].match(sentence):
            sentence = sentence[lead.end()].upper() + sentence[lead.end() + 1 :]
        shorter = _remove_first_word(sentence)
        if shorter == sentence:
            break
        sentence = shorter
    return sentence


def _remove_first_word(sentence: str) -> str:
    """Return a sentence without a first interjection, connective or call such as "Hey Ben,", capitalized."""
    head, _, rest = sentence.partition(" ")
    if head in _WORDS["calls"] and (called := _PATTERNS["call"].match(sentence)):
        rest = sentence[called.end() :]
        return rest[0].upper() + rest[1:]
    word = head.rstrip(",!.…").lower()
    if word not in OPENERS or not rest:
        return sentence
    if word in CONNECTIVES and not _leans_back(word, rest):
        return sentence
    if head[-1] not in ",!…":
        following = rest.partition(" ")[0].strip(",.;:!?").lower().replace("’", "'")
        if word not in CONNECTIVES or (
            word in _WORDS["conditional"] and following not in _WORDS["subjects"]
        ):
            return sentence
    if not rest[0].isalpha():
        return sentence
    return rest[0].upper() + rest[1:]


FAREWELL_CHARS_MAX = 40
"""Characters at the end of a sentence in which a farewell is looked for."""


def remove_farewell(sentence: str) -> str:
    """Return a sentence without a farewell such as ", see you tomorrow" at its end."""
    tail = max(0, len(sentence) - FAREWELL_CHARS_MAX)
    found = _PATTERNS["farewell"].search(sentence, tail)
    return sentence[: found.start()] if found else sentence


def is_courtesy(words: Sequence[str]) -> bool:
    """Return True if a sentence's words, in lower case, are a greeting, thanks or applause.

    The first word or a sign-off decides; a digit or more than `COURTESY_WORDS_MAX` words exclude it.
    """
    if len(words) > COURTESY_WORDS_MAX:
        return False
    if words[0] not in COURTESIES and _WORDS["sign_offs"].isdisjoint(words):
        return False
    return not any(map(str.isdigit, "".join(words)))


# Factors for a sentence's worth by its form, chosen on conversations 1-5 of LoCoMo.
QUESTION_FACTOR = 0.4
PLAIN_FACTOR = 0.85
"""Factor of a sentence without a name, a value or a cue."""
LISTING_FACTOR = 0.35
"""Factor of a table row, command or log line."""
EVENTFUL_LISTING_FACTOR = 0.6
"""Factor of a row or command that reports an event, such as a failure."""
PROSE_STOP_SHARE = 0.15
"""Share of stop words below which a line may be a listing. Notes and appointments have few too
("Dentist, Thursday, 08:20"), but they end or pause as prose does."""
SECRET_FACTOR = 0.4
"""Factor of a sentence with a masked secret: the rest of it is mostly about that."""
RECORD_FACTOR = 0.6
"""Factor of a line about records, to which the worth of the line is added."""

RECEIPT_WORDS_MAX = 3
"""New words up to which an agent's shorter reply to a statement may only repeat it: "Noted: 72 hours"."""

REMARK_FACTOR = 0.5
"""Factor of an agent's reply that has no word of the statement before."""

BOILERPLATE_TIMES = 3
BOILERPLATE_FACTOR = 0.3
"""Factor of a sentence that is said at least `BOILERPLATE_TIMES`, such as a line of a prompt."""

CHAIN_MAX = 2
"""Maximum sentences in a row of which each needs the one before; more make a story of their own."""
WORDS_MIN = 3
EXACT_SHARE_MAX = 0.75
"""Share of exact values above which a sentence is a row of them."""

VALUES = tokens.EXACT_KINDS - {tokens.TokenKind.IDENTIFIER}
"""Kinds of values with which two words make a statement; not identifiers, as code is full of them."""

_STOP = tokens.TokenKind.STOP  # found faster than an attribute of an Enum

SENTENCE_ENDS = tuple(sentences.SPACED_ENDS + sentences.UNSPACED_ENDS)
CLOSING_SIGNS = "\"'”’)]»*_`」"
SENTENCE_ENDINGS = (*SENTENCE_ENDS, *CLOSING_SIGNS)
"""Signs at the end of a sentence that was not cut for its length."""
_LIST_COMMAS_MIN, _LIST_WORDS_MAX = 2, 3
_FENCE = ("```", "~~~")


class Statement(NamedTuple):
    """A sentence of a memory, with the values for its selection."""

    at: int
    """Position among all sentences of the group."""
    memory: int
    role: str
    text: str
    starts_line: bool
    stems: tuple[str, ...] = ()
    """Stems of the words, each once; in a fixed order, on which sums of fractions depend."""
    emphasis: float = 1.0
    readable: bool = True
    """True if the sentence makes sense alone or after the sentence `needs`."""
    needs: int | None = None
    """Position of the preceding sentence that this one refers to."""


def _only_repeats(reply: str, statement: str) -> bool:
    """Return True if an agent's reply is shorter than a statement and says hardly more.

    A reply with a new name, number or day, or with a word such as "no" or "instead", corrects the statement.
    """
    if len(reply) >= len(statement):
        return False
    new = tokens.find_keywords(reply) - tokens.find_keywords(statement)
    if len(new) > RECEIPT_WORDS_MAX:
        return False
    corrects = any(
        "negation" in each.signs or not {"corrected", "now"}.isdisjoint(each.cues)
        for each in read_statements(reply)
    )
    return not corrects and not any(
        token.stem in new and not token.surface.islower()
        for token in tokens.tokenize(reply)[1:]
    )


class StatementReader:
    """Reader that splits memories into distinct statements, and collects their words' worth."""

    def __init__(self, *, zone: tzinfo, names_all_speakers: bool) -> None:
        """Name the speakers of all statements (`names_all_speakers`), or only of those in the first person."""
        self.statements: list[Statement] = []
        self.known = Vocabulary()
        self._zone = zone
        self._names_all_speakers = names_all_speakers
        self._reported = ""
        """The user's last message, without pasted lines, if it asks nothing and has no reply yet."""
        self._seen: dict[str, tuple[int, int]] = {}
        """Position of each sentence, and how often it was said."""

    def read(self, index: int, memory: MemoryRecord) -> None:
        """Add a memory's new sentences; lower the emphasis of any that occurs `BOILERPLATE_TIMES` times."""
        said = None
        if formatting.may_have_relative_dates(memory.content):
            said = in_zone(memory.created_at, self._zone)
        role = " ".join(memory.role.split())
        last = self.statements[-1] if self.statements else None
        same_speaker = last and role and last.role == role
        before = last.at if last and same_speaker else None
        own = remove_pasted(memory.content)
        is_cut = own is not memory.content
        is_receipt = role == "assistant" and _only_repeats(own, self._reported)
        stated = tokens.find_keywords(self._reported if role == "assistant" else "")
        is_remark = bool(stated) and stated.isdisjoint(tokens.find_keywords(own))
        if role == "assistant":
            self._reported = ""
        elif role == "user":
            self._reported = "" if sentences.is_question(own) else own
        for sentence, starts_line, prose in _split_sentences(memory.content):
            key = sentence.casefold()
            place, times = self._seen.get(key, (len(self.statements), 0))
            self._seen[key] = place, times + 1
            if times:
                before = None
                if times + 1 == BOILERPLATE_TIMES:
                    known = self.statements[place]
                    emphasis = known.emphasis * BOILERPLATE_FACTOR
                    self.statements[place] = known._replace(emphasis=emphasis)
                continue
            text = sentence.replace("**", "") or sentence
            if starts_line and (bullet := _PATTERNS["bullet"].match(text)):
                text = text[bullet.end() :] or text
            if said:
                text = formatting.annotate_relative_dates(text, said)
            statement = Statement(
                len(self.statements),
                index,
                role,
                text,
                starts_line,
                emphasis=(0.5 + memory.importance)
                * (REMARK_FACTOR if is_remark else 1.0),
                readable=prose and not is_receipt and (not is_cut or sentence in own),
            )
            self._add_sentence(statement, before)
            before = statement.at

    def add_record_line(self, line: RecordLine) -> None:
        """Add a line about one or several records as one statement."""
        words = tokens.tokenize(line.text)
        statement = Statement(
            len(self.statements),
            line.position,
            "",
            line.text,
            starts_line=True,
            stems=self.known.add(words),
            emphasis=RECORD_FACTOR + line.worth,
            readable=True,
        )
        self.statements.append(statement)

    def _add_sentence(self, sentence: Statement, before: int | None) -> None:
        """Rate a sentence by its form, its words and any reference to the statement at `before`; add it."""
        text = sentence.text
        stamp = _PATTERNS["stamp"].match(text) if sentence.starts_line else None
        said, secrets = PLACEHOLDER.subn(" ", text[stamp.end() :] if stamp else text)
        words = tokens.tokenize(said)
        kinds = [word.kind for word in words]
        emphasis = tokens.emphasis_factor(words)
        form = emphasis
        if listed := _is_listing(text, kinds):
            form *= EVENTFUL_LISTING_FACTOR if form > 1 else LISTING_FACTOR
        elif form == 1 and tokens.EXACT_KINDS.isdisjoint(kinds):
            is_named = True in [word.capital for word in words[1:]]
            form = 1.0 if is_named else PLAIN_FACTOR
        if sentences.is_question(text):
            form *= QUESTION_FACTOR
        weight = sentence.emphasis * form
        if stamp:
            weight *= LISTING_FACTOR
        if secrets:
            weight *= SECRET_FACTOR
        readable = sentence.readable and _says_something(text, words, kinds)
        needs: int | None = None
        if readable:
            text = remove_opener(text)
            if refers_back(text):
                needs = before
                readable = before is not None and self._may_follow(before, text)
            weight *= rate_event(
                sentence.text,
                is_ruling=emphasis >= tokens.RULING,
                is_introduced=needs is not None,
                is_message=bool(sentence.role and sentence.starts_line and not listed),
            )
        named = self._names_all_speakers or is_first_person(words)
        self.statements.append(
            sentence._replace(
                role=sentence.role if named else "",
                text=text,
                stems=self.known.add(words),
                emphasis=weight,
                readable=readable,
                needs=needs,
            )
        )

    def _may_follow(self, before: int, text: str) -> bool:
        """Return True if a sentence that refers back makes sense after the statement `before`.

        `before` is its position. The chain of statements that it needs must be short and readable,
        and not begin with a question.
        """
        first = text.partition(" ")[0].strip(_EDGE).partition("'")[0].lower()
        if first in _WORDS["personal"]:  # "he" or "she" needs somebody before
            named = _PATTERNS["somebody"].findall(self.statements[before].text)
            if tokens.CALENDAR.issuperset(named):
                return False
        for _ in range(CHAIN_MAX):
            statement = self.statements[before]
            if not statement.readable:
                return False
            if statement.needs is None:
                return not sentences.is_question(statement.text)
            before = statement.needs
        return False


def _split_sentences(content: str) -> Iterator[tuple[str, bool, bool]]:
    """Yield (sentence, starts a line, is prose) for the sentences of a memory's text.

    Code is not prose; nor are the parts of a sentence that was cut for its length.
    """
    parts = sentences.split_sentences(content)
    if len(parts) == 1:
        yield *parts[0], not content.startswith(_FENCE)
        return
    fenced = cut = False
    last = len(parts) - 1
    for place, (sentence, starts_line) in enumerate(parts):
        fence = starts_line and sentence.startswith(_FENCE)
        fenced ^= fence
        fragment = cut and not starts_line
        cut = (
            not sentence.endswith(SENTENCE_ENDINGS)
            and place < last
            and not parts[place + 1][1]
        )
        yield sentence, starts_line, not (fenced or fence or fragment or cut)


def is_first_person(words: Sequence[tokens.TextToken]) -> bool:
    """Return True if a sentence, given as tokens, has a word such as "I" or "my"."""
    return any(word.surface.lower() in _WORDS["first_person"] for word in words)


def add_speaker(memory: MemoryRecord) -> str:
    """Return a memory's text; if it is in the first person, with "role: " before it."""
    content, role = memory.content, " ".join(memory.role.split())
    if not role or content.startswith(f"{role}: "):
        return content
    words = tokens.tokenize(" ".join(content.split()))
    return f"{role}: {content}" if is_first_person(words) else content


def _says_something(
    text: str, words: Sequence[tokens.TextToken], kinds: Sequence[tokens.TokenKind]
) -> bool:
    """Return True if a sentence is more than a greeting, a heading, numbers or a fragment."""
    count = len(words)
    if not words or text[-1] in ":：" or text[0] in "|([{<*_":
        return False
    if _PATTERNS["code"].search(text):
        return False
    if text.count('"') % 2 or text.count("`") % 2 or text.count("(") > text.count(")"):
        return False  # a quotation, code or remark goes on in the next sentence
    if is_courtesy([word.surface.lower() for word in words]):
        return False
    if not text.isascii():
        return any(map(str.isalpha, text)) and not _is_bare_list(text, kinds)
    if count < WORDS_MIN:
        return count > 1 and not VALUES.isdisjoint(kinds)
    exact = sum(map(tokens.EXACT_KINDS.__contains__, kinds))
    return exact <= count * EXACT_SHARE_MAX and not _is_bare_list(text, kinds)


def _is_bare_list(text: str, kinds: Sequence[tokens.TokenKind]) -> bool:
    """Return True if a sentence without stop words only lists values and names, and is no appointment."""
    if text.count(", ") < _LIST_COMMAS_MIN or _STOP in kinds:
        return False
    parts = text.split(", ")
    if any(part.split(" ")[0].lower() in tables.WEEKDAYS for part in parts):
        return False  # an appointment
    return all(part.count(" ") < _LIST_WORDS_MAX for part in parts)


def _is_listing(sentence: str, kinds: Sequence[tokens.TokenKind]) -> bool:
    """Return True if a sentence has the form of a table row, a command or a log line.

    Such a sentence has few stop words, a share below `PROSE_STOP_SHARE`. It also has signs of code or a
    command, or mostly exact values, or neither a comma nor a final mark. `kinds` are its tokens' kinds.
    """
    if kinds.count(_STOP) >= PROSE_STOP_SHARE * len(kinds):
        return False
    if _PATTERNS["signs"].search(sentence):
        return True
    exact = sum(kind in tokens.EXACT_KINDS for kind in kinds)
    return exact > len(kinds) / 2 or not (
        sentence.endswith(SENTENCE_ENDS) or "," in sentence
    )


def remove_pasted(text: str) -> str:
    """Return a text without pasted logs, traces and code, each up to the next empty line."""
    if text.count("\n") < 2:
        return text
    kept: list[str] = []
    pasted = False
    for line in map(str.strip, text.splitlines()):
        if not (line and pasted):
            pasted = not _PATTERNS["bullet"].match(line) and bool(
                _PATTERNS["frame"].match(line) or _PATTERNS["code"].search(line)
            )
        if not pasted:
            kept.append(line)
    return "\n".join(kept)


HEAD_CHARS_MIN = 25
HEAD_WORDS_MIN = 4

_PAIRS = (("(", ")"), ("[", "]"), ("“", "”"), ("«", "»"))


def shorten_at_clause(text: str, chars_max: int) -> str:
    """Return the longest beginning of whole clauses that fits in `chars_max`, with a full stop, or ""."""
    best = ""
    for border in _PATTERNS["border"].finditer(text, 0, chars_max + 2):
        head = text[: border.start()].rstrip(" ,;:–—-、，；：")
        last, _ = sentences.split_sentences(text[: border.end() + 1])[-1]
        is_cut = head.endswith(".") and len(last) > 1  # behind "Dr." or "1."
        if len(head) < chars_max and not is_cut and _is_whole(head):
            best = head
    if not best or best.endswith(SENTENCE_ENDS):
        return best
    return f"{best}."


def _is_whole(head: str) -> bool:
    """Return True if the beginning of a sentence makes sense without the rest."""
    if len(head) < HEAD_CHARS_MIN or head.endswith((":", "…")):
        return False
    if head.isascii() and head.count(" ") < HEAD_WORDS_MIN - 1:
        return False
    if head.rpartition(" ")[2].lower() in _WORDS["unfinished"]:
        return False
    last = max(head.rfind(end, 0, len(head) - 1) for end in ". ! ?".split())
    clause = head[last + 1 :].strip()
    if _PATTERNS["subordinate"].match(clause) and "," not in clause:
        return False
    return head.count('"') % 2 == 0 and all(
        head.count(opening) == head.count(closing) for opening, closing in _PAIRS
    )
