"""Recognizes that a newer statement ends an older one: a new value, a dropped decision, a correction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from mnemosyned.text.endings.statements import (
    CLAUSE_END,
    CUE_REASONS,
    NEGATION,
    NEW,
    PASSED,
    PRICE,
    READ_CHARS_MAX,
    Statement,
    StatementWord,
    find_languages,
    read_statements,
)
from mnemosyned.text.stems import fold_case, irregular_forms, stem

SOFT_VALUE_WORDS_MAX = 4
"""Words of a value that is no time, number or code."""
_VALUE_CUES = ("corrects", "changed", "replaced", "now")
"""Cues of another value, the surest first."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The finding that a sentence of a newer text ends a sentence of an older text."""

    reason: str
    """The kind of the cue: `gone`, `changed`, `instead`, `now`, `corrected`, or `value` without a cue."""
    cue: str
    """The words of the newer sentence that say so, in lower case; empty for `value`."""
    older: str
    """The sentence that is ended."""
    newer: str
    """The sentence that ends it."""
    places: tuple[int, int] = (0, 0)
    """The numbers of the two sentences in their texts, from 0, as `sentence_at` counts them."""


def find_ending(older: str, newer: str) -> Ending | None:
    """Return how a newer text ends a statement of an older one, or None if it ends none.

    The texts may have several sentences. The rules are cautious: a doubtful case ends nothing.
    """
    for new in read_statements(newer):
        for old in read_statements(older, new.rules) if new.is_stated else ():
            if old.text != new.text and (name := _find_reason(old, new)):
                cue = new.cues[name][0] if name in new.cues else ""
                places = (old.place, new.place)
                return Ending(
                    CUE_REASONS.get(name, name), cue, old.text, new.text, places
                )
    return None


def find_ending_statements(text: str) -> list[Statement]:
    """Return the statements of a text that may end an older one; none for most texts."""
    low = text[:READ_CHARS_MAX].lower()
    if not any(rules.find("hint", low) for rules in find_languages(low)):
        return []
    return [
        statement
        for statement in read_statements(text)
        if statement.is_stated and (statement.cues or _may_state_value(statement))
    ]


def _may_state_value(statement: Statement) -> bool:
    """Tell whether a statement gives a value, such as a number or a name, to an attribute."""
    return bool(
        statement.rules.find("single", fold_case(statement.low[: statement.pivot]))
    ) and any(
        word.kind != "word" for word in statement.words if word.start > statement.pivot
    )


def list_search_words(statement: Statement) -> list[str]:
    """Return the words by which the statements that one may end can be found."""
    words = [
        word.key for word in statement.words if word.key not in statement.rules.weak
    ]
    for topic in ("place", "work"):
        if statement.rules.find(topic, statement.low):
            known = statement.rules.patterns[topic].pattern.split("|")
            words += [word for word in known if word.isalpha()]
    return words


def is_same_word(key: str, other: str) -> bool:
    """Tell whether two words in lower case, without accents, are forms of one word."""
    if key == other:
        return True
    if key[0] != other[0]:
        return False
    if any(map(str.isdigit, key + other)):
        return False
    if stem(key) == stem(other):
        return True
    if other in irregular_forms(key) or key in irregular_forms(other):
        return True
    pairs = zip(key, other, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    shorter, longer = sorted((len(key), len(other)))
    return (
        shorter >= 4 <= shared
        and longer - shared <= max(2, longer // 3)
        and (shared > 4 or 7 * shared >= 4 * longer)
    )


def _is_among(word: StatementWord, others: Iterable[StatementWord]) -> bool:
    """Tell whether a word occurs among others, in any form."""
    return any(is_same_word(word.key, other.key) for other in others)


def _are_within(
    words: Iterable[StatementWord], others: Sequence[StatementWord]
) -> bool:
    """Tell whether all the words occur among the others, in any form."""
    return all(_is_among(word, others) for word in words)


_VALUE_KINDS = {
    "time": "when",
    "day": "when",
    "month": "when",
    "number": "number",
    "code": "code",
}


def _have_like_values(
    new: Collection[StatementWord],
    old: Collection[StatementWord],
    *,
    strict: bool = False,
) -> bool:
    """Tell whether the values of two statements are of one kind: both times, numbers, or words.

    With `strict`, times and numbers of either need their like in the other, whatever words are there.
    """
    kinds, old_kinds = (
        {_VALUE_KINDS.get(word.kind, "word") for word in words} for words in (new, old)
    )
    units, old_units = ({word.unit for word in words} - {""} for words in (new, old))
    if units and old_units and not units & old_units:
        return False
    if strict and kinds | old_kinds != {"word"}:
        kinds.discard("word")
    return bool(kinds & old_kinds) or ("when" in kinds and "number" in old_kinds)


def _find_reason(old: Statement, new: Statement) -> str:
    """Return the name of the cue by which the statement `new` ends the statement `old`, or an empty text.

    It is `value` if the statements give two values of one attribute, without a cue.
    """
    rules = new.rules
    persons = [
        name
        for name in ("i", "other")
        if rules.find(name, old.low) or rules.find(name, new.low)
    ]
    both_other = rules.find("other", old.low) and rules.find("other", new.low)
    if len(persons) > 1 and not both_other:
        return ""
    if _has_new_holder(old, new):
        return "now"
    if "replaced" in new.cues and _is_replacer(old, new):
        return "replaced"
    if not _are_within(_drop_price(new.subject, old), old.words):
        return ""
    ours, theirs = (
        [word for word in each.words if word.key not in rules.weak]
        for each in (new, old)
    )
    fresh = [word for word in ours if not _is_among(word, old.words)]
    gone = [word for word in theirs if not _is_among(word, new.words)]
    shared = [word for word in ours if word not in fresh]
    if name := _find_rejection(old, new, gone):
        return name
    # A verb of change without "to" says nothing of a value.
    sure = {"corrects", "now"} | (
        {"changed", "replaced"} if new.values_start else set()
    )
    name = next(
        (each for each in _VALUE_CUES if each in new.cues.keys() & sure), "value"
    )
    is_negated = NEGATION.search(new.low) and not NEGATION.search(old.low)
    if name == "corrects" and not fresh and len(shared) > 1 and is_negated:
        return name
    if is_negated and fresh and not gone and not new.cues:
        # "the freeze isn't on Friday, it's on Wednesday"
        kinds = {word.kind for word in fresh}
        is_exact = "word" not in kinds and kinds <= {word.kind for word in shared}
        return "corrects" if is_exact and len(fresh) == 1 else ""
    if not fresh or "gone" in new.cues or (name == "value" and is_negated):
        return ""
    if new.cues and all(
        word in shared for word in ours if word.start < new.values_start
    ):
        is_bare = "changed" in new.cues and all(word.kind == "name" for word in fresh)
        for topic in ("naming", "place", "work"):
            is_topic = rules.find(topic, old.low) and rules.find(topic, new.low)
            has_subject = any(
                not rules.patterns[topic].fullmatch(word.key) for word in shared
            )
            is_same = (
                bool(gone)
                and _are_within(old.subject, new.words)
                and (has_subject or is_bare)
            )
            if is_topic and (has_subject if topic == "naming" else is_same):
                return next(each for each in CUE_REASONS if each in new.cues)
    # "her landlord" is not ours, where nothing is said to have changed.
    is_anothers = name == "value" and "other" in persons and not both_other
    if not gone or not shared or is_anothers:
        return ""
    if _gives_another_value(old, new, name=name, fresh=fresh, gone=gone, shared=shared):
        return name
    is_alike = _have_like_values(
        fresh, gone, strict=name not in ("changed", "replaced")
    )
    is_first = fresh[0].kind in ("word", "name") and fresh[0].start < shared[0].start
    if not is_alike or (is_first and not new.pivot):
        return ""
    is_other = _is_other_value(
        old, new, name=name, fresh=fresh, gone=gone, shared=shared
    )
    return name if is_other else ""


def _gives_another_value(
    old: Statement,
    new: Statement,
    *,
    name: str,
    fresh: Sequence[StatementWord],
    gone: Sequence[StatementWord],
    shared: Sequence[StatementWord],
) -> bool:
    """Tell whether two statements with words in common differ in exact values alone: a name, a number.

    `name` is that of the cue. Without one, it has to be a single value behind a verb such as "is", or
    behind an attribute: "the gym costs 34 euros", "session timeout 15 min".
    """
    rules = new.rules
    if name == "now" and len(fresh) < 3 and len(shared) > 1:
        names = [sum(word.kind == "name" for word in words) for words in (fresh, gone)]
        if names[0] == 1 and names[1]:
            return True
    # A capital at the beginning may be that of a name.
    kinds, old_kinds = (
        {
            "name"
            if word.start == 0 and each.text[0].isupper()
            else _VALUE_KINDS.get(word.kind, word.kind)
            for word in words
        }
        for words, each in ((fresh, new), (gone, old))
    )
    units, old_units = ({word.unit for word in words} for words in (fresh, gone))
    if kinds != old_kinds or "word" in kinds or units != old_units:
        return False
    if name != "value":
        is_role = len(shared) > 1 or any(
            rules.patterns[each].fullmatch(word.key)
            for each in ("single", "duty")
            for word in shared
        )
        return max(len(fresh), len(gone)) <= 2 and ("name" not in kinds or is_role)
    if len(fresh) + len(gone) > 2 or PASSED.search(new.low):
        return False
    if kinds == {"name"}:
        verbs = rules.patterns["naming"]
        return bool(verbs.search(new.low, 0, fresh[0].start) and verbs.search(old.low))
    before = new.low[: fresh[0].start].split()
    is_attribute = bool(before) and rules.patterns["single"].fullmatch(
        fold_case(before[-1].rstrip(":"))
    )
    return (
        kinds == {"number"}
        and units != {""}
        and bool(is_attribute or 0 < new.pivot < fresh[0].start)
    )


def _find_rejection(
    old: Statement, new: Statement, gone: Sequence[StatementWord]
) -> str:
    """Return the name of the cue by which `new` rejects what `old` says, or an empty text.

    `gone` are the words with content of `old` that `new` does not have.
    """
    rules = new.rules
    for name, rejected, values, is_change in _list_rejected(new):
        strong = [word for word in rejected if word.key not in rules.weak]
        cue = new.cues[name]
        if is_change:
            is_renaming = rules.find("naming", cue[0])
            is_value = (
                rules.find("naming", old.low) if is_renaming else _states_value(old)
            )
            repeats = any(_is_among(word, old.words) for word in values)
            if not values or not (is_value or repeats or name == "replaced"):
                continue
        is_event = name == "gone" and len(strong) > 2 and strong[0].start < cue.start()
        if is_event and not _is_among(strong[0], old.words):
            strong = strong[1:]  # an event by another word: "we dine", "the dinner"
        strong = _drop_price(strong, old)
        fits = not values or _have_like_values(values, [*gone, *strong])
        if (
            fits
            and _are_within(strong, old.words)
            and _is_evidence(strong, old, new, name=name)
        ):
            return name
    return ""


def _is_evidence(
    rejected: Sequence[StatementWord], old: Statement, new: Statement, *, name: str
) -> bool:
    """Tell whether words that occur in an older statement are enough to say that it is meant.

    A name, a code, two words or a third of the statement are; a short number, and a single word behind
    the cue `instead`, need a further word. `name` is that of the cue.
    """
    theirs = [word for word in old.words if word.key not in old.rules.weak]
    is_bare = name == "instead" and len(rejected) == 1 and rejected[0].kind == "word"
    if is_bare or all(word.kind == "number" and len(word.key) < 3 for word in rejected):
        others = [word for word in new.words if word not in rejected]
        return bool(rejected) and any(
            _is_among(word, old.words)
            for word in others
            if word.key not in new.rules.weak
        )
    is_exact = any(word.kind != "word" for word in rejected)
    return is_exact or len(rejected) > 1 or 3 * len(rejected) >= len(theirs)


def _is_other_value(
    old: Statement,
    new: Statement,
    *,
    name: str,
    fresh: Sequence[StatementWord],
    gone: Sequence[StatementWord],
    shared: Sequence[StatementWord],
) -> bool:
    """Tell whether the newer of two statements with words in common gives another value of one attribute.

    `name` is that of the cue, `fresh` are the words of the newer statement alone, `gone` those of the
    older alone, and `shared` those of both.
    """
    has_attribute = any(
        new.rules.patterns["single"].fullmatch(word.key) for word in shared
    )
    if name == "value":
        has_attribute = has_attribute or bool(NEW.search(new.low, 0, new.pivot))
        is_same = new.subject and _are_within(old.subject, new.subject)
        are_values = fresh[0].lead == gone[0].lead and all(
            word.kind != "word" for word in (*fresh, *gone)
        )
        return bool(
            has_attribute and is_same and are_values and max(len(fresh), len(gone)) <= 3
        )
    if (
        name == "changed"
        and new.values_start
        and new.words[0].start >= new.values_start
    ):
        return False
    soft, old_soft = (
        [word for word in words if word.kind in ("word", "name")]
        for words in (fresh, gone)
    )
    if len(soft) < len(fresh):
        is_contrast = any(
            word.lead == other.lead != "" for word in soft for other in old_soft
        )
        # Most words of a long sentence are about something else.
        is_about = 3 * len(shared) >= len(shared) + len(fresh) and 4 * len(
            shared
        ) >= len(gone)
        return is_about and not is_contrast
    before = [
        word
        for word in new.words
        if word.start < fresh[0].start and _is_among(word, old.words)
    ]
    first = next(
        (word.start for word in old.words if _is_among(word, shared)), len(old.text)
    )
    is_short = max(len(fresh), len(gone)) <= SOFT_VALUE_WORDS_MAX
    if fresh[0].lead != gone[0].lead or not is_short or gone[0].start < first:
        return False
    is_same_frame = len(before) > 1 or (len(shared) > 2 and len(fresh) < 3)
    return has_attribute or (is_same_frame and name not in ("changed", "replaced"))


def _drop_price(words: Sequence[StatementWord], old: Statement) -> list[StatementWord]:
    """Return the words without "price", which an older statement with an amount of money need not have."""
    if not any(word.unit == "money" for word in old.words):
        return list(words)
    return [word for word in words if not PRICE.fullmatch(word.key)]


def _is_replacer(old: Statement, new: Statement) -> bool:
    """Tell whether the subject of a statement replaced what an older one names: "Ruff replaced flake8"."""
    words = [word for word in new.words if word.key not in new.rules.weak]
    rest = [word for word in words[1:] if word.kind in ("word", "name")]
    return (
        bool(rest)
        and not _is_among(words[0], old.words)
        and _are_within(rest, old.words)
        and _is_evidence(rest, old, new, name="replaced")
    )


def _states_value(old: Statement) -> bool:
    """Tell whether a statement says what, where or when something is."""
    has_verb = any(
        old.rules.find(name, old.low) for name in ("is", "place", "work", "naming")
    )
    return has_verb or any(word.kind not in ("word", "name") for word in old.words)


def _has_new_holder(old: Statement, new: Statement) -> bool:
    """Tell whether a role has a new holder: "Maria is the manager", "Ahmed is the manager now"."""
    if "now" not in new.cues or not new.subject:
        return False
    role = [
        word
        for word in new.words
        if word.start >= new.pivot and word.key not in new.rules.weak
    ]
    has_role = any(
        new.rules.patterns[name].fullmatch(word.key)
        for name in ("single", "duty")
        for word in role
    )
    is_other = not any(_is_among(word, old.words) for word in new.subject)
    return has_role and is_other and _are_within(role, old.words)


def _list_rejected(
    new: Statement,
) -> Iterator[tuple[str, list[StatementWord], list[StatementWord], bool]]:
    """Yield (name of a cue, what it rejects, the values in its place), by the grammar of each cue.

    The last value tells whether what is rejected may also be the subject that has a new value.
    """
    low, rules = new.low, new.rules

    def words_between(start: int, end: int) -> list[StatementWord]:
        """Return the words of the statement that begin between two positions."""
        return [word for word in new.words if start <= word.start < end]

    def end_of_clause(start: int) -> int:
        """Return where the clause ends that goes on at a position."""
        ends = (
            rules.patterns["stop"].search(low, start),
            CLAUSE_END.search(low, start),
        )
        return min((found.start() for found in ends if found), default=len(low))

    def start_of_clause(end: int) -> int:
        """Return where the clause begins that goes on at a position."""
        return max(
            (match.end() for match in CLAUSE_END.finditer(low, 0, end)), default=0
        )

    if cue := new.cues.get("instead"):
        rejected = words_between(cue.end(), end_of_clause(cue.end()))
        yield "instead", rejected, [], False
        yield "instead", rejected[:1], [], False
    if cue := new.cues.get("gone"):
        yield (
            "gone",
            words_between(start_of_clause(cue.start()), end_of_clause(cue.end())),
            [],
            False,
        )
    for name in ("changed", "replaced"):
        if not (cue := new.cues.get(name)):
            continue
        start, stop = start_of_clause(cue.start()), end_of_clause(cue.end())
        if not words_between(cue.end(), stop):  # the verb comes last
            stop = cue.start()
        origin = rules.patterns["from"].search(low, start, stop)
        if origin and (to := rules.patterns["to"].search(low, origin.end(), stop)):
            yield name, words_between(origin.end(), to.start()), [], False
        to = (
            rules.patterns["by"].search(low, start + 1, stop)
            if name == "replaced"
            else None
        )
        to = to or rules.patterns["to"].search(
            low, start + 1 if stop < cue.end() else cue.end(), stop
        )
        if before := words_between(start, min(cue.start(), to.start() if to else stop)):
            if to or name == "replaced":
                middle = (
                    words_between(cue.end(), to.start())
                    if to and to.start() > cue.end()
                    else []
                )
                yield (
                    name,
                    [*before, *middle],
                    words_between(to.end() if to else cue.end(), stop),
                    True,
                )
        elif to and (between := words_between(cue.end(), to.start())):
            yield name, between, words_between(to.end(), stop), True
