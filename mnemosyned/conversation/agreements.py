"""Agreements: what a person decides by an answer to an agent's proposal, such as "ok, but every 30 minutes"."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise, takewhile

from mnemosyned.text.endings.statements import NEGATION, UNITS, list_sentences
from mnemosyned.text.frames import neutralize_line
from mnemosyned.text.languages.tables import COUNTS
from mnemosyned.text.rule_files import read_rule_file, read_tables
from mnemosyned.text.sentences import is_question, split_sentences
from mnemosyned.text.terms import fold_case, stem
from mnemosyned.text.tokens import find_keywords
from mnemosyned.text.word_cache import clear_on_forget

_TABLES = read_tables(__file__, "agreements.toml")
_ORDINALS = "|".join(" ".join(_TABLES["names"]["ordinals"].values()).split())
_WORDS, _NAMES, _PATTERNS, _FORMS = read_rule_file(__file__, ordinals=_ORDINALS)

ANSWER_CHARS_MAX = 200
"""Length of an answer's first sentence; a longer one is a statement of its own."""
MESSAGE_CHARS_MAX = 2_000
"""Characters read at the end of an agent's message."""
AFTER_MAX = 4
"""Sentences of reasons behind a proposal, without those of lists; more are on something else."""
STATEMENT_CHARS_MAX = 240
OPTIONS_MIN = 2
_OPTION_FORMS = ("item", "inline", "bulleted")
VALUE_WORDS_MAX = 4
"""Words of an answer that is only another value: "every 30 minutes"."""
ANSWERS_CACHED_MAX = 4_000


class AnswerKind(StrEnum):
    """The fate of a proposal, in the words that begin its line."""

    AGREED = "Agreed"
    REFUSED = "Refused"
    POSTPONED = "Put off"


@dataclass(frozen=True, slots=True)
class AnsweredProposal:
    """A proposal of an agent with a person's answer."""

    kind: AnswerKind
    statement: str
    """What is agreed, in the agent's words but for what the person changed; or what was proposed."""
    sentence: str
    """The sentence of the agent's message that has the proposal."""
    answer: str = ""
    """The first sentence of the answer, if the statement does not contain all that it says."""
    is_option: bool = False
    """Whether it is one of several options."""
    is_changed: bool = False
    """Whether the person changed what was proposed."""
    about: str = ""
    """The sentence before the proposal, if it says what "it" in the proposal means."""
    refused: str = ""
    """What the answer refuses of the same message: "Refused: keep logs for 30 days"."""

    @property
    def text(self) -> str:
        """The line to tell: "Agreed: store sessions in Redis"."""
        answer = f" → {self.answer}" if self.answer else ""
        return neutralize_line(f"{self.kind}: {self.statement}{answer}")


@clear_on_forget
@lru_cache(ANSWERS_CACHED_MAX)
def read_answer(message: str, answer: str) -> AnsweredProposal | None:
    """Return what a person's `answer` makes of the proposal in an agent's `message`, directly before it.

    Both may be cut to what is read: the end of a message, and the beginning of an answer. The result is
    None if nothing but work of the moment is proposed, or if the answer is doubtful.
    """
    sentences = [text.replace("’", "'") for text, _ in split_sentences(answer)]
    agrees = _PATTERNS["assent"].fullmatch
    read = list(takewhile(lambda text: agrees(text.lower()), sentences))
    read = read or sentences[:1]
    first = " ".join(read)
    said = first.lower()
    is_mocking = any(_PATTERNS["mocking"].search(each.lower()) for each in sentences)
    is_long = len(said) != len(first) or len(said) > ANSWER_CHARS_MAX
    if is_long or is_mocking or is_question(answer):
        return None
    chosen = _PATTERNS["option"].match(said)
    if chosen and (found := _find_option(message, chosen["which"])):
        sentence, option = found
        change = first[chosen.end() :]
        if _PATTERNS["further"].match(change.lower()):
            change = ""
        if change and not _is_change(change, option):
            return None
        return AnsweredProposal(
            AnswerKind.AGREED,
            option,
            sentence,
            change,
            is_option=True,
            is_changed=bool(change),
        )
    if judged := _read_verdicts(" ".join(sentences).lower()):
        accepted = [number for number, is_agreed in judged.items() if is_agreed]
        numbers = accepted or [*judged]
        proposals = [*filter(None, (_find_proposal(message, n) for n in numbers))]
        is_more = accepted == [1, 2] and _find_proposal(message, 3)
        if is_more or len(proposals) < len(numbers):
            return None
        others = [_find_proposal(message, n) for n in judged if n not in numbers]
        statement, refused = (
            "; ".join(each.statement for each in part if each)
            for part in (proposals, others)
        )
        return replace(
            proposals[0],
            kind=AnswerKind.AGREED if accepted else AnswerKind.REFUSED,
            statement=statement,
            answer="" if accepted else " ".join(sentences),
            refused=refused and f"{AnswerKind.REFUSED}: {refused}",
        )
    # "Go" alone agrees, too: the whole answer comes first.
    assent = agrees(said) or _PATTERNS["assent"].match(said)
    is_later = _PATTERNS["later"].search(said)
    is_no = _PATTERNS["no"].match(said) and not _PATTERNS["no_refusal"].search(said)
    named = _PATTERNS["named"].match(said)
    is_made = said.startswith(("make it ", "make that "))
    is_value = len(answer.split()) <= VALUE_WORDS_MAX and _find_values(said)
    if not (assent or is_later or is_no or named or is_made or is_value) or not (
        agreed := _find_proposal(message)
    ):
        return None
    statement = agreed.statement
    if is_later or is_no:
        kind = AnswerKind.POSTPONED if is_later else AnswerKind.REFUSED
        reason = " ".join(sentences)
        reason = reason if len(reason) <= ANSWER_CHARS_MAX else first
        return replace(agreed, kind=kind, answer=reason)
    change = first[assent.end() :] if assent else first
    if named and _repeats(named["name"], statement):
        return agreed
    if assent and not change:
        # "OK, thanks" may be said to anything, and "ok" before another sentence.
        is_doubtful = len(sentences) > len(read) or assent["thanks"]
        return agreed if assent["firm"] or not is_doubtful else None
    if changed := _replace_value(statement, change):
        return replace(agreed, statement=changed, is_changed=True)
    if _is_change(change, statement) and (assent or is_made):
        return replace(agreed, answer=first, is_changed=True)
    return agreed if assent and _repeats(change, statement) else None


def _read_verdicts(said: str) -> dict[int, bool]:
    """Return {number of a proposal: whether it is accepted} for "yes to the first, no to the second"."""
    if _PATTERNS["both"].fullmatch(said):
        return {1: True, 2: True}
    verdicts: dict[int, bool] = {}
    for part in filter(None, _PATTERNS["between"].split(said)):
        match = _PATTERNS["verdict"].fullmatch(part)
        if not match or bool(match["before"]) == bool(match["after"]):
            return {}
        which = _NAMES["ordinals"].get(match["which"], match["which"])
        verdicts[int(which)] = not (match["no"] or match["never"])
    return verdicts


def _find_option(message: str, name: str) -> tuple[str, str] | None:
    """Return the sentence that states an option, and the option's words without its mark; None if not offered.

    `name` is a number, a letter or an ordinal, in lower case. The options must be alternatives; steps, such as
    "run the tests", are none.
    """
    forms = {form: [*_PATTERNS[form].finditer(message)] for form in _OPTION_FORMS}
    marked = next(filter(forms.get, forms), "bulleted")
    items = forms[marked]
    names = [
        str(place) if marked == "bulleted" else match["name"].lower()
        for place, match in enumerate(items, start=1)
    ]
    number = _NAMES["ordinals"].get(name, "")
    if number and int(number) <= len(names):
        name = names[int(number) - 1]
    is_inline = marked == "inline"
    is_in_order = not is_inline or f" {''.join(names)}" in " 123456789 abcde"
    if len(items) < OPTIONS_MIN or names.count(name) != 1 or not is_in_order:
        return None
    offers = [
        sentence.lower()
        for sentence, _ in split_sentences(_PATTERNS[marked].sub("", message))
        if _PATTERNS["offering" if is_inline else "choice"].search(sentence.lower())
    ]
    sentence = split_sentences(items[names.index(name)]["text"])[0][0]
    option = _clean(sentence)
    lows = [_clean(item["text"]).lower() for item in items]
    is_work = any(map(_PATTERNS["momentary"].search, lows))
    is_answer = _PATTERNS["assent"].match(option.lower())
    is_next = any(map(_PATTERNS["next"].search, offers))
    if not offers or is_work or is_answer or is_next:
        return None
    whole = (each for each in list_sentences(message) if sentence in each)
    return min(whole, key=len, default=sentence), option


def _find_proposal(message: str, number: int = 0) -> AnsweredProposal | None:
    """Return the only proposal in an agent's message, as if agreed to; None if there is none.

    With a `number`, from 1, it is that one of several proposals, or of the items of a list that is proposed.
    Conditional and optional proposals, those of work of the moment, and those before another question or
    matter do not count.
    """
    prose = "".join(message.split("```")[::2])
    sentences = list_sentences(prose)
    found = [
        (place, match)
        for place, sentence in enumerate(sentences)
        if (match := _match_proposal(sentence))
    ]
    is_one = len(found) == 1
    if not (is_one or 0 < number <= len(found)):
        return None
    place, match = found[0 if is_one else number - 1]
    end = next((at for at, _ in found if at > place), None)
    sentence = sentences[place]
    before = match.string[: match.start()].lower()
    # Of several, each may be numbered: "First, I suggest we use UTC".
    is_first = not before or (number and _PATTERNS["numbering"].fullmatch(before))
    begin = match.end("lead") if is_first and match["lead"] else 0
    statement = _clean(re.sub("[?？]", "", match.string[begin:]))
    after = sentences[place + 1 : end]
    items: list[str] = []
    if sentence.rstrip("* ").endswith((":", "：")):
        items = list(takewhile(_PATTERNS["bullet"].match, after))
        after = after[len(items) :]
        statement = "; ".join(
            filter(None, (statement.rstrip(":"), *map(_clean, items)))
        )
    if number and is_one:
        if not 0 < number <= len(items) > 1:
            return None
        sentence, statement = items[number - 1], _clean(items[number - 1])
    named = _PATTERNS["option"].fullmatch(statement.lower())
    if named and (option := _find_option(message, named["which"])):
        sentence, statement = option
        after = []
    is_withdrawn = any(_PATTERNS["withdrawn"].search(each.lower()) for each in after)
    reasons = [each for each in after if not _PATTERNS["bullet"].match(each)]
    is_other = len(reasons) > AFTER_MAX or (
        after
        and is_question(after[-1])
        and not _PATTERNS["go_ahead"].search(after[-1].lower())
    )
    low = statement.lower()
    is_work = _PATTERNS["momentary"].search(low) and not _PATTERNS["standing"].search(
        low
    )
    is_aside = is_work or _PATTERNS["aside"].search(sentence.lower())
    is_name = statement.isascii() and " " not in statement
    if (
        is_name
        or len(statement) > STATEMENT_CHARS_MAX
        or is_other
        or is_aside
        or is_withdrawn
    ):
        return None
    about = sentences[place - 1].strip() if place else ""
    if (
        len(about) > ANSWER_CHARS_MAX
        or is_question(about)
        or not find_keywords(about)
        or not _PATTERNS["dangling"].match(low)
    ):
        about = ""
    return AnsweredProposal(AnswerKind.AGREED, statement, sentence, about=about)


def _match_proposal(sentence: str) -> re.Match[str] | None:
    """Return the match, in any case, of the words by which an agent's sentence proposes something."""
    plain = _MARKDOWN.sub("", sentence).replace("’", "'")
    return _PATTERNS["proposal"].search(plain) or _PATTERNS["proposing_question"].match(
        plain
    )


def proposes(sentence: str) -> bool:
    """Return True if an agent's sentence is a proposal, which decides nothing by itself."""
    return _match_proposal(sentence) is not None


def state_decision(statement: str) -> str:
    """Return what was agreed as a statement that may end others: "from now on we moved it" for "move it".

    Only English imperatives and gerunds are changed.
    """
    verb, space, rest = statement.removeprefix("that we ").partition(" ")
    past = _NAMES["decisions"].get(verb.lower())
    return f"from now on we {past}{space}{rest}" if past else statement


def may_belong_to_agreement(message: str, *, by_agent: bool) -> bool:
    """Return whether a message by an agent may have a proposal, or one by a person the answer to that."""
    if by_agent:
        is_listing = _PATTERNS["item"].search(message)
        return bool(is_listing) or any(map(proposes, list_sentences(message)))
    said = message[:ANSWER_CHARS_MAX].lower()
    return any(_PATTERNS[name].match(said) for name in ("assent", "option"))


def _clean(text: str) -> str:
    """Return a text on one line, without Markdown at its words and without its end mark."""
    return " ".join(_MARKDOWN.sub("", text).split()).rstrip(".!;, ")


_MARKDOWN = re.compile(r"\*\*|__|^[\s>#*•-]*(?:\d[.)]\s+)?")


def _repeats(text: str, statement: str) -> bool:
    """Return True if a text says nothing but words of the statement: "ok, Redis then"."""
    words = find_keywords(text)
    low = text.lower()
    is_other = NEGATION.search(low) or _PATTERNS["no_change"].search(low)
    return bool(words) and not is_other and words <= find_keywords(statement)


def _is_change(text: str, statement: str) -> bool:
    """Return True if the rest of an answer changes a proposed statement, without condition, objection, work."""
    low = text.lower()
    is_but = _PATTERNS["but"].match(low)
    actor = is_but and _ACTOR.match(text[is_but.end() :])
    return bool(
        is_but
        and not (actor and not find_keywords(actor[1]) <= find_keywords(statement))
        and not _PATTERNS["no_change"].search(low)
        and not _PATTERNS["objection"].search(low)
        and not _PATTERNS["objector"].search(low)
    )


_ACTOR = re.compile(
    r"([A-Z][^\W\d_]+) (?!instead|statt|only|for|in|on|with|and|or|für|per|para|pour)[^\W\d_]"
)
"""A name with a verb, as in "but Ann said no"; "but Redis gets 2 GB" is on what is proposed."""


def _replace_value(statement: str, change: str) -> str:
    """Return the statement with its only value of a unit replaced by that in "but 30 minutes".

    The result is "" if `change` says more than that.
    """
    if _PATTERNS["no_change"].search(change.lower()):
        return ""
    new, old = _find_values(change), _find_values(statement)
    if len(new) != 1:
        return ""
    ((start, end, *units),) = new
    alike: list[Value] = []
    for place, unit in enumerate(units):  # hours for hours, else time for time
        alike = alike or [each for each in old if each[2 + place] == unit]
    value = change[start:end]
    is_but = _PATTERNS["but"].match(change.lower())
    rest = change[is_but.end() if is_but else 0 : start] + change[end:]
    if len(alike) != 1 or find_keywords(rest) - find_keywords(statement):
        return ""
    first, last, *_ = alike[0]
    is_other = statement[first:last].lower() != value.lower()
    return statement[:first] + value + statement[last:] if is_other else ""


Value = tuple[int, int, str, str]
"""Start and end of a number with its unit in a text, the stem of the unit, and its kind, such as time."""


def _find_values(text: str) -> list[Value]:
    """Return the numbers with a unit in a text, such as "15 minutes" or "one hour"."""
    values: list[Value] = []
    for number, unit in pairwise(_WORD.finditer(text)):
        count = number[0].lower()
        is_number = count[0].isdigit() or count in COUNTS
        if is_number and not text[number.end() : unit.start()].strip():
            word = fold_case(unit[0])
            kinds = (name for name, each in UNITS.items() if each.fullmatch(word))
            kind = next(kinds, "")
            if kind or COUNTS.get(count) != 1:  # else it is an article: "a TTL"
                values.append((number.start(), unit.end(), stem(word), kind or word))
    for each in _PATTERNS["unspaced_value"].finditer(text):
        kinds = (name for name, units in UNITS.items() if units.match(each["unit"]))
        values.append((*each.span(), each["unit"], next(kinds, each["unit"])))
    return values


_WORD = re.compile(r"[^\W_]+(?:[.,:]\d+)*|%")
