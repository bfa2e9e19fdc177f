"""Scores of candidates: BM25 of their words, their neighbors and sittings, priors, and vector similarity."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappush, heappushpop
from itertools import islice, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from mnemosyned.memory.values import DEFAULT_SESSION
from mnemosyned.search.query import (
    NO_SCORE,
    Corpus,
    Match,
    Nearness,
    Query,
    ScoreBreakdown,
    SearchCandidates,
    stems_and_kinds,
)
from mnemosyned.search.weights import WEIGHTS
from mnemosyned.text.terms import (
    WORD,
    Terms,
    fold_case,
    gram_text,
    has_unspaced_script,
    irregular_forms,
    is_vague,
    length_in_letters,
    stem,
    stem_prefix,
    stems_with_content,
    synonyms_of,
    unify_letters,
    with_words_apart,
)

if TYPE_CHECKING:
    from datetime import datetime

    from mnemosyned.text.dates.questions import TimeSpan


READ_CHARS_MAX = 4_000
"""Characters read of a text; for the rest, the database's own score is used."""
GRAM_IDF = 2.0
"""The idf assumed for every pair of characters, as the index does not count them."""
KEYWORD_MEMORIES_MIN = 1_000
"""Number of memories assumed for the idf of keywords if there are fewer."""
NEARBY_SHARE = 0.5
"""Weight of a keyword that only a neighbor has: an answer need not repeat the question's words."""
PLACES_MAX = 100
"""Occurrences of a term that are counted: a text with more of them is a list."""
PASSAGES_MAX = 50
"""Passages of a text that are compared."""


class TermScores(NamedTuple):
    """Scores of a text for a question."""

    scores: tuple[float, ...]
    """BM25 of each term."""
    phrase: float
    """Score of neighboring terms of the question that stand close together in the text, too."""


class _Form(NamedTuple):
    """One way to write a term."""

    term: int
    tokens: tuple[str, ...]
    """The words of the form, in lower case without accents."""
    stems: tuple[str, ...]
    other: float
    """Weight of the form if a text has it with other endings."""
    typed: float = 1.0
    """Weight of the form if a text has it exactly."""


class TermReader:
    """Reader of texts for the terms of one question.

    A text is searched for the beginnings of the terms rather than split into words: a fifth of
    the time.
    """

    def __init__(self, terms: Terms, corpus: Corpus) -> None:
        """Prepare to find the terms in texts; `corpus` has their idf."""
        weights = self._weights = WEIGHTS.bm25
        self.words = terms.words
        self.idf = tuple(corpus.idf(word) for word in terms.words)
        # In a small memory a word that one memory has would be worth nothing against one of none.
        usual = replace(corpus, count=max(corpus.count, KEYWORD_MEMORIES_MIN))
        self.keyword_idf = tuple(
            0.0 if is_vague(fold_case(word)) else usual.idf(word) for word in self.words
        )
        """The idf of each term, 0 for vague words unless the question has no others."""
        if not any(self.keyword_idf):
            self.keyword_idf = tuple(map(usual.idf, self.words))
        self.grams = terms.grams
        self.possible = sum(self.idf) + GRAM_IDF * len(terms.grams)
        """Score of a text with every term once: what a text that covers the question is worth."""
        self._found: dict[str, AbstractSet[int]] = {}
        """The numbers of the terms in each text that was read."""
        self._keywords_sum = sum(self.keyword_idf) + GRAM_IDF * len(terms.grams)
        self.no_scores = (0.0,) * len(terms.words)
        """Scores of a text without any term."""
        self._average = max(1.0, corpus.average_chars)
        self._passage_chars = max(weights.passage_chars_min, round(self._average))
        self._passage_saturation = self._saturation(self._passage_chars)
        self._score_max = tuple(idf * (weights.k1 + 1) for idf in self.idf)
        forms: dict[str, list[_Form]] = {}
        for number, word in enumerate(terms.words):
            for form in _forms_of(number, word, corpus.compounds.get(word, ())):
                forms.setdefault(stem_prefix(form.stems[0]), []).append(form)
        self._matchers = [
            (beginning, _FormMatcher(among, max(len(form.tokens) for form in among)))
            for beginning, among in forms.items()
        ]

    def read(self, text: str) -> TermScores:
        """Return the BM25 score of each term, and the score of neighboring terms, for a text.

        Only the first `READ_CHARS_MAX` characters are searched, but the length counts in full.
        """
        folded = fold_case(with_words_apart(text[:READ_CHARS_MAX]))
        counts, places = self._find_terms(folded)
        self._found[text] = counts.keys()
        if not places:
            return TermScores(self.no_scores, 0.0)
        scores = list(self.no_scores)
        saturation = self._saturation(len(text))
        for term, count in counts.items():
            scores[term] = self._score_max[term] * count / (count + saturation)
        if len(text) > self._passage_chars:
            best = self._best_passage(places)
            for term in counts:
                passage = self._passage_score(term, best.get(term, 0))
                scores[term] += self._weights.passage * (passage - scores[term])
        phrase = 0.0
        if len(places) > 1:
            phrase = _phrase_score(folded, scores, places)
        return TermScores(tuple(scores), phrase)

    def unread_score(self, scores: Sequence[float], idf_sum: float) -> float:
        """Return an estimated score of a text's words beyond its first `READ_CHARS_MAX` characters.

        `scores` are the scores of the part that was read, by term; `idf_sum` is the sum of the idf of all the
        question's words that the whole text has.
        """
        read = sum(idf for idf, score in zip(self.idf, scores, strict=True) if score)
        return (
            max(0.0, idf_sum - read)
            * (self._weights.k1 + 1)
            / (1 + self._saturation(READ_CHARS_MAX))
        )

    def name_scores(self, role: str) -> tuple[float, ...]:
        """Return for each term its idf if a speaker's name contains the term, else 0."""
        counts, _ = self._find_terms(fold_case(with_words_apart(role)))
        return tuple(idf if at in counts else 0.0 for at, idf in enumerate(self.idf))

    def coverage(
        self, terms: AbstractSet[int], text: str, nearby: Collection[int] = ()
    ) -> float:
        """Return the idf-weighted share, 0 to 1, of the question's keywords that a memory has.

        `terms` are the numbers of the terms in the memory's `text` or its speaker's name. `nearby` are
        those of neighbors, weighed by `NEARBY_SHARE`. Character pairs are looked for in `text`.
        """
        share = 0.0
        for term in terms:
            share += self.keyword_idf[term]
        for term in nearby:
            if term not in terms:
                share += NEARBY_SHARE * self.keyword_idf[term]
        if self.grams:
            unified = unify_letters(text)
            share += GRAM_IDF * sum(gram in unified for gram in self.grams)
        return min(1.0, share / self._keywords_sum) if self._keywords_sum else 0.0

    def terms_in(self, text: str) -> AbstractSet[int]:
        """Return the numbers of the terms in the beginning of a text; cheaper than `read`."""
        if text in self._found:
            return self._found[text]
        folded = fold_case(with_words_apart(text[:READ_CHARS_MAX]))
        self._found[text] = terms = set[int]()
        for beginning, matcher in self._matchers:
            at, left = folded.find(beginning), PLACES_MAX
            while at >= 0 and left:
                if at == 0 or not folded[at - 1].isalnum():
                    left -= 1
                    found = matcher.weights_at(folded, at)
                    if found:
                        terms.update(term for term, _ in found)
                        break
                at = folded.find(beginning, at + len(beginning))
        return terms

    def _find_terms(self, text: str) -> tuple[dict[int, float], dict[int, list[int]]]:
        """Return the counts and the positions of the terms in a folded text, both by the term's number."""
        counts: dict[int, float] = {}
        places: dict[int, list[int]] = {}
        for beginning, matcher in self._matchers:
            at, left = text.find(beginning), PLACES_MAX
            while at >= 0 and left:
                if at == 0 or not text[at - 1].isalnum():
                    left -= 1
                    for term, weight in matcher.weights_at(text, at):
                        if term in counts:
                            counts[term] += weight
                            places[term].append(at)
                        else:
                            counts[term] = weight
                            places[term] = [at]
                at = text.find(beginning, at + len(beginning))
        return counts, places

    def _saturation(self, chars: float) -> float:
        """Return the count at which a term has half of its highest score in a text of `chars`."""
        return self._weights.k1 * (
            1 - self._weights.b + self._weights.b * chars / self._average
        )

    def _passage_score(self, term: int, count: int) -> float:
        """Return the score of a term that occurs `count` times in a passage, on the scale of whole texts."""
        count = min(count, self._weights.repeats_max)
        return self._score_max[term] * count / (count + self._passage_saturation)

    def _best_passage(self, places: Mapping[int, Sequence[int]]) -> Mapping[int, int]:
        """Return {term number: count} in the best-scoring passage of a long text, by the terms' `places`."""
        first = min(map(min, places.values()))
        if max(map(max, places.values())) < first + self._passage_chars:
            return {term: len(found) for term, found in places.items()}
        ordered = sorted([(at, term) for term, found in places.items() for at in found])
        counts = dict.fromkeys(places, 0)
        gains, repeats_max = self._passage_gains, self._weights.repeats_max
        best: Mapping[int, int] = {}
        score, most, end = 0.0, 0.0, 0
        for start, first_term in ordered[:PASSAGES_MAX]:
            while end < len(ordered) and ordered[end][0] < start + self._passage_chars:
                term = ordered[end][1]
                count = counts[term] = counts[term] + 1
                if count <= repeats_max:
                    score += gains[term][count]
                end += 1
            if score > most:
                best, most = counts.copy(), score
            count = counts[first_term]
            if count <= repeats_max:
                score -= gains[first_term][count]
            counts[first_term] = count - 1
        return best

    @cached_property
    def _passage_gains(self) -> list[list[float]]:
        """Gains in a passage's score, by term number and then by number of occurrences.

        The gain at index 0 is 0, at 1 that of the first occurrence, at 2 that of the second.
        """
        counts = range(1, self._weights.repeats_max + 1)
        score = self._passage_score
        return [
            [0.0, *(score(term, count) - score(term, count - 1) for count in counts)]
            for term in range(len(self.words))
        ]


def _forms_of(number: int, word: str, compounds: Sequence[str]) -> list[_Form]:
    """Return the forms that match the term `number`: as typed, irregular, synonym, joined or split."""
    tokens = tuple(WORD.findall(fold_case(word)))
    if not tokens:
        return []
    is_code = any(char.isdigit() for char in word)
    weights = WEIGHTS.bm25
    other = weights.other_form_of_code if is_code else weights.other_form
    spellings = [tokens]
    synonyms: tuple[str, ...] = ()
    if len(tokens) == 1:
        spellings += [(kin,) for kin in irregular_forms(tokens[0])]
        synonyms = synonyms_of(tokens[0])
    spellings += [tuple(WORD.findall(fold_case(each))) for each in compounds]
    return [
        *(_Form(number, each, tuple(map(stem, each)), other) for each in spellings),
        *(
            _Form(number, (each,), (stem(each),), weights.synonym, weights.synonym)
            for each in synonyms
        ),
    ]


@dataclass(slots=True)
class _FormMatcher:
    """Matcher for forms that begin with the same letters; it caches the weights of words already read."""

    _forms: Sequence[_Form]
    _tokens_max: int
    _weights: dict[tuple[str, ...] | str, list[tuple[int, float]]] = field(
        default_factory=dict
    )

    def weights_at(self, text: str, at: int) -> list[tuple[int, float]]:
        """Return (term number, weight) for each term that a word matches: 1 as typed, less for another form."""
        key: tuple[str, ...] | str
        if self._tokens_max == 1:
            key = WORD.match(text, at)[0]  # type: ignore[index]  # the form begins here
        else:
            key = tuple(
                token[0] for token in islice(WORD.finditer(text, at), self._tokens_max)
            )
        weights = self._weights.get(key)
        if weights is None:
            tokens = (key,) if isinstance(key, str) else key
            weights = self._weights[key] = []
            for form in self._forms:
                written = tokens[: len(form.tokens)]
                if written == form.tokens:
                    weights.append((form.term, form.typed))
                elif tuple(map(stem, written)) == form.stems:
                    weights.append((form.term, form.other))
        return weights


def _phrase_score(
    text: str, scores: Sequence[float], places: Mapping[int, Sequence[int]]
) -> float:
    """Return a bonus for each pair of terms adjacent in the question and close in a text: the lower score."""
    weights = WEIGHTS.bm25
    total = 0.0
    for term, found in places.items():
        following = places.get(term + 1, ())
        if len(following) > 1:
            following = sorted(following)  # the forms of a term are found one by one
        for start in found if following else ():
            after = bisect_right(following, start)
            if after == len(following):
                continue
            end = following[after]
            is_near = end - start <= weights.close_chars
            if is_near and len(WORD.findall(text, start, end)) <= weights.close_tokens:
                total += min(scores[term], scores[term + 1])
                break
    return total


_QUESTION_MARKS = ("?", "？")


def neighbor_scores(
    matches: Mapping[int, Match],
    scores: Mapping[int, Sequence[float]],
    beside: Mapping[int, Sequence[tuple[int, int]]],
) -> dict[int, list[float]]:
    """Return {row number: scores that a match gets from its neighbors}.

    `scores` maps the row numbers of matches to lists of equal length. A match gets a share of each of its
    neighbors' scores, at each index the highest. `beside` lists (row number, distance) of a match's neighbors;
    without an entry, adjoining rows are its neighbors. Neighbors must be close in time and have the same source
    and session, which must not be the default one.
    """
    adjoining = [
        (step * distance, distance)
        for distance in range(1, len(WEIGHTS.neighbors) + 1)
        for step in (-1, 1)
    ]
    lent: dict[int, list[float]] = {}
    for position, own in scores.items():
        match = matches[position]
        if match.session == DEFAULT_SESSION:
            continue
        pairs = beside.get(position)
        if pairs is None:
            pairs = [(position + offset, distance) for offset, distance in adjoining]
        for neighbor, distance in pairs:
            other = matches.get(neighbor)
            if (
                other
                and match.session == other.session
                and match.source == other.source
                and abs(match.created_at - other.created_at) <= WEIGHTS.neighbors_within
            ):
                share = WEIGHTS.neighbors[distance - 1]
                if neighbor > position and (
                    "?" in match.content or "？" in match.content
                ):
                    share *= WEIGHTS.reply
                shared = [score * share for score in own]
                known = lent.get(neighbor)
                lent[neighbor] = list(map(max, known, shared)) if known else shared
    return lent


def sitting_scores(
    matches: Iterable[Match],
    terms: Mapping[int, Sequence[float]],
    sums: Mapping[int, float],
) -> dict[int, float]:
    """Return {row number: sum over the terms of the best score in the sitting} for all matches.

    A sitting is the part of a session between long pauses; much text in a sitting lowers the score.
    `terms` are the scores by row number and term. A match alone in its sitting keeps its sum of
    scores in `sums`.
    """
    sessions: dict[tuple[str, str | None], list[Match]] = defaultdict(list)
    for match in matches:
        sessions[match.session, match.source].append(match)
    sittings: list[list[Match]] = []
    for session in sessions.values():
        session.sort(key=attrgetter("created_at"))
        sittings.append([session[0]])
        for earlier, match in pairwise(session):
            if match.created_at - earlier.created_at > WEIGHTS.sitting_pause:
                sittings.append([])
            sittings[-1].append(match)
    scores = dict(sums)
    for sitting in sittings:
        if len(sitting) == 1:
            continue
        positions = [match.position for match in sitting]
        best = map(max, *(terms[position] for position in positions))
        size = sum(len(match.content) for match in sitting)
        share = WEIGHTS.sitting_chars / max(size, WEIGHTS.sitting_chars)
        scores.update(dict.fromkeys(positions, share * sum(best)))
    return scores


UNNAMED_ROLES = frozenset(
    "user assistant system tool function model human agent ai bot me self owner note".split()
) | {""}
"""Roles that are not the name of a person."""
USER_ROLES = frozenset({"user", "human"})
ASSISTANT_ROLES = frozenset("assistant model agent ai bot".split())
_SENTENCES = re.compile(r"[^.!?？…\n]+[.!?？…\n]*")


class _ReadCandidate(NamedTuple):
    """A candidate with the scores of its own text."""

    match: Match
    terms: tuple[float, ...]
    """Score of each term; the last number is the score of everything else."""
    phrase: float
    speaker: float
    """Sum of the idf of terms in the speaker's name."""


def candidate_scores(
    query: Query, candidates: SearchCandidates, reader: TermReader
) -> tuple[dict[int, ScoreBreakdown], float]:
    """Return {row number: parts of the score} of memories, and the best share of keywords.

    `reader` reads the question's terms. Scored are matches by words, their neighbors, and memories
    similar by vectors. The share is that of the question's keywords, 0 to 1, in the candidate with
    most of them; 1 without similarities.
    """
    matches = {match.position: match for match in candidates.memories}
    roles = {match.role for match in candidates.memories}
    in_names = {
        role: reader.name_scores(role) if role else reader.no_scores for role in roles
    }
    names = {
        term
        for scores in in_names.values()
        for term, score in enumerate(scores)
        if score
    }
    speakers = {role: sum(scores) for role, scores in in_names.items()}
    read = {
        position: _read_candidate(reader, match, names, speakers[match.role])
        for position, match in matches.items()
    }
    terms = {position: candidate.terms for position, candidate in read.items()}
    words = {position: sum(own) for position, own in terms.items()}
    lending = {
        position: own for position, own in terms.items() if matches[position].score > 0
    }
    lent = neighbor_scores(matches, lending, candidates.beside)
    sittings: Mapping[int, float] = {}
    if not query.only_then:
        sittings = sitting_scores(matches.values(), terms, words)
    asked = stems_and_kinds(" ".join(query.terms.words))
    sources = {match.source for match in matches.values()} - {None}
    expected_roles = ASSISTANT_ROLES if query.expected.assistant else USER_ROLES
    is_talk = any(role.lower() in USER_ROLES | ASSISTANT_ROLES for role in roles)
    if is_talk and not query.expected.assistant:
        expected_roles |= {""}  # a note without a role is in the user's words, too
    question = _QuestionTraits(
        query,
        names,
        expected_roles,
        {source for source in sources if not asked.isdisjoint(stems_and_kinds(source))},
        [(span, span.with_margin()) for span in query.spans],
        WEIGHTS.leading_share * max(words.values(), default=0.0),
    )
    scores: dict[int, ScoreBreakdown] = {}
    asking: dict[int, float] = {}
    for position, candidate in read.items():
        asking[position] = question_share(candidate.match.content)
        borrowed = lent.get(position)
        if candidate.match.score <= 0 and borrowed is None:
            continue
        own = words[position]
        best = sum(map(max, candidate.terms, borrowed)) if borrowed else own
        sitting = sittings.get(position, 0.0)
        scores[position] = _score_candidate(
            question,
            candidate,
            words=own,
            neighbors=best - own,
            sitting=sitting,
            asking=asking[position],
        )
    content = stems_with_content(" ".join(query.terms.words))
    scores = _penalize_little_content(query, content, scores, matches)
    covered = 1.0
    if candidates.nearness.cosines:
        covered = 0.0
        for position, candidate in read.items():
            in_name = in_names[candidate.match.role]
            share = _coverage(reader, candidate, in_name, lent.get(position))
            covered = max(covered, share)
            if covered == 1.0:
                break
        cosines = candidates.nearness.cosines
        lengths = {row: length_in_letters(matches[row].content) for row in cosines}
        similar = {
            row: (max(0.0, near),)
            for row, near in cosines.items()
            if matches[row].role.lower() not in UNNAMED_ROLES
        }
        from_beside = neighbor_scores(matches, similar, candidates.beside)
        nearness = replace(
            candidates.nearness,
            cosines={
                row: near + WEIGHTS.meaning_nearby * from_beside.get(row, (0.0,))[0]
                for row, near in cosines.items()
            },
        )
        scores = add_similarity(
            scores, nearness, lengths, possible=reader.possible, covered=covered
        )
    for position, share in asking.items():
        # The question itself, asked before, answers nothing.
        if (
            share == 1.0
            and position in scores
            and stems_with_content(matches[position].content) <= content
        ):
            parts = scores[position]
            asks = parts.asks - WEIGHTS.asks_again * sum(parts)
            scores[position] = parts._replace(asks=asks)
    return scores, covered


def _coverage(
    reader: TermReader,
    candidate: _ReadCandidate,
    in_name: Sequence[float],
    borrowed: Sequence[float] | None,
) -> float:
    """Return the share of the question's keywords in a candidate, its speaker's name or its neighbors."""
    terms = {at for at, own in enumerate(in_name) if own or candidate.terms[at]}
    if candidate.match.grams:  # parts of identifiers
        terms |= reader.terms_in(gram_text(candidate.match.content))
    nearby = {at for at in range(len(in_name)) if borrowed[at]} if borrowed else ()
    return reader.coverage(terms, candidate.match.content, nearby)


def _read_candidate(
    reader: TermReader, match: Match, names: AbstractSet[int], speaker: float
) -> _ReadCandidate:
    """Return a candidate with the score of each term in its text.

    `names` are the terms in the names of all speakers; they count less in what a speaker with a name said.
    `speaker` is the sum of the idf of the terms in the name of this text's speaker.
    """
    if match.score <= 0:
        return _ReadCandidate(match, (*reader.no_scores, 0.0), 0.0, speaker)
    scores, phrase = reader.read(match.content)
    # The index also finds pairs of characters, and words beyond the part of a text that is read.
    rest = match.grams
    if rest and not reader.grams:
        parts = reader.read(gram_text(match.content))
        rest = WEIGHTS.name_parts * sum(parts.scores) or rest
    if len(match.content) >= READ_CHARS_MAX:
        rest += reader.unread_score(scores, match.score - match.grams)
    elif not any(scores) and not speaker:
        rest += match.score - match.grams
    if names and match.role.lower() not in UNNAMED_ROLES:
        scores = tuple(
            score * WEIGHTS.named_by_others if term in names else score
            for term, score in enumerate(scores)
        )
    return _ReadCandidate(match, (*scores, rest), phrase, speaker)


class _QuestionTraits(NamedTuple):
    """What the scores of all candidates of one question depend on."""

    query: Query
    names: AbstractSet[int]
    """Terms that are in the name of a speaker."""
    expected_roles: AbstractSet[str]
    sources: AbstractSet[str | None]
    """Sources whose names have a word of the question."""
    spans: Sequence[tuple[TimeSpan, TimeSpan]]
    """Times in the question, each also with a margin."""
    leading: float
    """Least score of words with which a candidate is read for a time in it."""


def _score_candidate(
    question: _QuestionTraits,
    candidate: _ReadCandidate,
    *,
    words: float,
    neighbors: float,
    sitting: float,
    asking: float,
) -> ScoreBreakdown:
    """Return the parts of a candidate's score: words, neighbors, sitting (see `sitting_scores`), bonuses.

    `asking` is the share of questions in its text.
    """
    match = candidate.match
    role = match.role.lower()
    phrase = WEIGHTS.phrase * candidate.phrase
    session = WEIGHTS.session * sitting
    score = words + phrase + neighbors + session
    asks = -WEIGHTS.asks * score * asking
    score += asks
    may_lead = words + neighbors >= question.leading
    is_answer = may_lead and question.query.expected.is_in(match.content)
    when = WEIGHTS.says_when * score * is_answer
    score += when
    user = WEIGHTS.user * score * (role in question.expected_roles) * (1 - asking)
    score += user
    is_named = role in UNNAMED_ROLES and any(
        candidate.terms[term] for term in question.names
    )
    speaker = WEIGHTS.speaker * score * bool(candidate.speaker or is_named)
    speaker += WEIGHTS.speaker_idf * candidate.speaker
    score += speaker
    source = WEIGHTS.source * (match.source in question.sources) * score
    score += source
    time = _weigh_time(question, match.created_at) * score
    score += time
    recency = 0.0
    if question.query.now is not None:
        age_days = max(0, (question.query.now - match.created_at).days)
        recency = 1 / (1 + age_days / WEIGHTS.recency_half_days)
    return ScoreBreakdown(
        words=words,
        phrase=phrase,
        neighbors=neighbors,
        session=session,
        asks=asks,
        when=when,
        user=user,
        speaker=speaker,
        source=source,
        time=time,
        recency=WEIGHTS.recency * recency * score,
        importance=WEIGHTS.importance * (match.importance - 0.5) * score,
    )


def _weigh_time(question: _QuestionTraits, created_at: datetime) -> float:
    """Return the weight of a candidate's time: high in a time that the question names, low near one, else 0."""
    weight = 0.0
    for span, nearby in question.spans:
        if span.since <= created_at < span.until:
            return WEIGHTS.time
        if nearby.since <= created_at < nearby.until:
            weight = WEIGHTS.time_nearby
    return weight


def question_share(text: str) -> float:
    """Return the share (0 to 1) of a text's characters in questions; 0 unless it ends with one."""
    if not text.rstrip().endswith(_QUESTION_MARKS):
        return 0.0
    sentences = _SENTENCES.findall(text)
    asking = sum(
        len(sentence)
        for sentence in sentences
        if any(mark in sentence for mark in _QUESTION_MARKS)
    )
    return asking / max(1, sum(map(len, sentences)))


def _penalize_little_content(
    query: Query,
    asked: AbstractSet[str],
    scores: Mapping[int, ScoreBreakdown],
    matches: Mapping[int, Match],
) -> dict[int, ScoreBreakdown]:
    """Return all scores; the best texts that add few stems to the question's (`asked`) get lower ones."""
    lowered = dict(scores)
    best: list[float] = []
    ranked = [(sum(parts), position) for position, parts in scores.items()]
    for score, position in sorted(ranked, reverse=True):
        is_full = len(best) == query.limit
        if is_full and score <= best[0]:
            break
        text = matches[position].content
        is_spaced = text.isascii() or not has_unspaced_script(text)
        little = 0.0
        if len(text) <= WEIGHTS.little_chars and is_spaced:
            stems = stems_with_content(text)
            common = len(text.split()) - len(stems)
            missing = max(0.0, 1 - len(stems - asked) / WEIGHTS.substance)
            chatter = min(1.0, max(0, common - WEIGHTS.terse) / WEIGHTS.substance)
            little = -WEIGHTS.little * (missing * chatter) * score
        if little:
            lowered[position] = scores[position]._replace(little=little)
        (heappushpop if is_full else heappush)(best, score + little)
    return lowered


def embedding_text(role: str, content: str) -> str:
    """Return the text to embed for a memory: "name: content", or the content of an unnamed role.

    By vectors alone, ten results contain 0.45 of LoCoMo's evidence with the speaker, 0.28 without; a
    role such as "user" only makes all texts alike.
    """
    return content if role.lower() in UNNAMED_ROLES else f"{role}: {content}"


def add_similarity(
    scores: Mapping[int, ScoreBreakdown],
    nearness: Nearness,
    lengths: Mapping[int, int],
    *,
    possible: float,
    covered: float,
) -> dict[int, ScoreBreakdown]:
    """Return the scores plus vector similarity, also for candidates found by similarity alone.

    Keys are row numbers; `nearness` has the cosines, `lengths` the characters of each text.
    `possible`, the score of a text with every word of the question, is the worth of a cosine of 1.
    The smaller the best share of the question's keywords (`covered`), the more similarity counts. A
    candidate without a vector gets the average similarity.
    """
    cosines = {
        position: max(0.0, cosine)
        * min(
            1.0,
            (lengths.get(position, 0) / WEIGHTS.meaning_chars)
            ** WEIGHTS.meaning_of_short,
        )
        for position, cosine in nearness.cosines.items()
        if position in scores or cosine >= nearness.vector_only_min
    }
    if not any(cosines.values()):
        return dict(scores)
    best = max(map(sum, scores.values()), default=0.0)
    uncovered = (1 - covered) ** WEIGHTS.meaning_power
    worth = max(possible, best, 1.0) * (
        WEIGHTS.meaning + WEIGHTS.meaning_uncovered * uncovered
    )
    known = [cosines[position] for position in scores if position in cosines]
    average = sum(known) / max(1, len(known))
    return {
        position: ScoreBreakdown(
            *scores.get(position, NO_SCORE)[:-1], worth * cosines.get(position, average)
        )
        for position in (*scores, *(cosines.keys() - scores.keys()))
    }
