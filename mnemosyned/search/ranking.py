"""Ranking: the best results for a question, one for each episode and repeats counted, as hits.

The results of a broad question, for a summary or everything about a subject, are spread over all
time.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence, Set as AbstractSet
from datetime import datetime
from itertools import accumulate
from typing import Any, NamedTuple

from mnemosyned.memory import values
from mnemosyned.search.confidence import ResultJudge
from mnemosyned.search.placement import add_period_summary, place_by_time
from mnemosyned.search.query import (
    BEGINNING,
    Corpus,
    Documents,
    Match,
    Nearness,
    Query,
    RankedResult,
    ScoreBreakdown,
    SearchCandidates,
)
from mnemosyned.search.scoring import USER_ROLES, TermReader, candidate_scores
from mnemosyned.search.weights import WEIGHTS
from mnemosyned.text.rule_files import compile_on_use, read_tables
from mnemosyned.text.terms import cut_snippet

ROW_BITS = 48
"""Bits of a row number: rows of the store at index n are numbered from n times two to this power."""
ReadDocuments = Callable[[Sequence[RankedResult]], Documents]


def store_index_of(position: int) -> int:
    """Return the index of the store that a merged candidate's row number belongs to."""
    return position >> ROW_BITS


def merge_candidates(found: Sequence[SearchCandidates]) -> SearchCandidates:
    """Return the candidates of several stores, with the row numbers of each store in its own range.

    Word frequencies are added up, so that scores are as in one store with all memories. Candidates
    of a single store are returned unchanged.
    """
    if len(found) == 1:
        return found[0]
    memories: list[Match] = []
    episodes: dict[int, float] = {}
    beside: dict[int, Sequence[tuple[int, int]]] = {}
    above: dict[int, int] = {}
    mentioning: set[int] = set()
    cosines: dict[int, float] = {}
    summaries: list[int] = []
    for index, each in enumerate(found):
        by = index << ROW_BITS
        memories += [_shift_match(match, by) for match in each.memories]
        episodes |= {row + by: score for row, score in each.episodes.items()}
        for row, pairs in each.beside.items():
            beside[row + by] = [(other + by, distance) for other, distance in pairs]
        above |= {row + by: parent + by for row, parent in each.above.items()}
        mentioning |= {row + by for row in each.mentioning}
        cosines |= {row + by: near for row, near in each.nearness.cosines.items()}
        summaries += [] if each.summary is None else [each.summary + by]
    least = min(each.nearness.vector_only_min for each in found)
    return SearchCandidates(
        memories=memories,
        episodes=episodes,
        beside=beside,
        corpus=_merge_word_statistics([each.corpus for each in found]),
        above=above,
        mentioning=mentioning,
        summary=next(iter(summaries), None),
        nearness=Nearness(cosines, least),
    )


def _shift_match(match: Match, by: int) -> Match:
    """Return a match with its row numbers raised by `by`.

    The session's name is extended: equal names in two stores are two conversations.
    """
    is_shared = not by or match.session == values.DEFAULT_SESSION
    return match._replace(
        position=match.position + by,
        episode=None if match.episode is None else match.episode + by,
        session=match.session if is_shared else f"{by}\0{match.session}",
    )


def _merge_word_statistics(corpora: Sequence[Corpus]) -> Corpus:
    """Return the word statistics of several stores as those of one: counts and frequencies added up."""
    count = sum(each.count for each in corpora)
    chars = sum(each.count * each.average_chars for each in corpora)
    frequencies: Counter[str] = Counter()
    compounds: dict[str, tuple[str, ...]] = {}
    for each in corpora:
        frequencies.update(each.frequencies)
        for word, forms in each.compounds.items():
            known = compounds.get(word, ())
            compounds[word] = tuple(dict.fromkeys((*known, *forms)))
    return Corpus(
        count=count,
        average_chars=chars / count if count else corpora[0].average_chars,
        frequencies=frequencies,
        compounds=compounds,
    )


def read_documents(
    results: Sequence[RankedResult], readers: Sequence[ReadDocuments]
) -> tuple[list[RankedResult], Documents]:
    """Return the results and the documents of all; leave out lines from another store than their result's.

    Each of `readers` reads documents of one store. Removed lines only repeat what a result already says.
    """
    own = [
        result._replace(
            lines=tuple(
                line
                for line in result.lines
                if store_index_of(line[0]) == store_index_of(result.main_position)
            )
        )
        for result in results
    ]
    memories: dict[int, values.MemoryRecord] = {}
    episodes: dict[int, values.Episode] = {}
    for index, read in enumerate(readers):
        by = index << ROW_BITS
        part = [
            result._replace(
                memory=None if result.memory is None else result.memory - by,
                episode=None if result.episode is None else result.episode - by,
                lines=tuple((row - by, score) for row, score in result.lines),
            )
            for result in own
            if store_index_of(result.main_position) == index
        ]
        found = read(part) if part else Documents({}, {})
        memories |= {row + by: memory for row, memory in found.memories.items()}
        episodes |= {row + by: episode for row, episode in found.episodes.items()}
    return own, Documents(memories, episodes)


def read_vectors(
    positions: Sequence[int],
    readers: Sequence[Callable[[Sequence[int]], Mapping[int, bytes]]],
) -> dict[str, bytes]:
    """Return {row number as text: vector} of memories that have one; each of `readers` reads one store."""
    vectors: dict[str, bytes] = {}
    for index, read in enumerate(readers):
        by = index << ROW_BITS
        found = read([row - by for row in positions if store_index_of(row) == index])
        vectors |= {str(row + by): vector for row, vector in found.items()}
    return vectors


POOL_PER_RESULT = 4
"""For a broad question, the number of results ranked for each one shown."""
RANKED_MAX = 100
SAME_SESSION = 0.7
"""Factor of a result's score for each result chosen earlier from the same session."""
SIDE_BY_SIDE = 0.7
"""Further factor if the two are at most `SIDE_BY_SIDE_POSITIONS` rows apart."""
SIDE_BY_SIDE_POSITIONS = 2
USER = 1.5
"""Factor of a user's words, as an assistant's answers repeat words of the question."""
_RULES = read_tables(__file__, "broad.toml")
_ASKS = compile_on_use(rf"\b(?:{'|'.join(_RULES['asks'])})\b", re.IGNORECASE)
_FRAME = frozenset(_RULES["frame"].split())
_WORD = re.compile(r"[^\W_][\w'’-]*")


def broad_topic(question: str) -> str | None:
    """Return the words that name the subject of a broad question, or None for another question."""
    if not _ASKS.search(question):
        return None
    words = _WORD.findall(question)
    return " ".join(word for word in words if word.lower() not in _FRAME)


def spread_results(
    results: Sequence[RankedResult],
    memories: Sequence[Match],
    *,
    limit: int,
    topic: str = "",
) -> list[RankedResult]:
    """Return up to `limit` results over many sessions and times, in the order of time.

    `results` are best first; `memories` are their candidates. A result is worth less for each chosen
    result of the same session, especially for a neighbor. Summaries without matching originals come
    last. If a result has the numbers and codes of the topic, as of "run 17", only such results are returned.
    """
    matches: Mapping[int, Match] = {match.position: match for match in memories}
    spots = [
        (result, matches[result.positions[0]])
        for result in results
        if result.positions and result.positions[0] in matches
    ]
    exact = {word for word in _WORD.findall(topic) if any(map(str.isdigit, word))}
    named = [
        (result, match)
        for result, match in spots
        if exact.issubset(
            word
            for position in result.positions
            for word in _WORD.findall(matches[position].content)
        )
    ]
    spots = named or spots
    chosen: list[tuple[RankedResult, Match]] = []
    while spots and len(chosen) < limit:
        best = max(spots, key=lambda spot: _rate_for_spread(spot[0], spot[1], chosen))
        spots.remove(best)
        chosen.append(best)
    chosen.sort(key=lambda spot: (spot[1].created_at, spot[1].position))
    alone = [result for result in results if not result.positions]
    return [*(result for result, _ in chosen), *alone[: limit - len(chosen)]]


def _rate_for_spread(
    result: RankedResult, match: Match, chosen: Sequence[tuple[RankedResult, Match]]
) -> float:
    """Return a result's score, raised for a user's words, lowered for each chosen result of its session."""
    worth = result.score * (USER if match.role.lower() in USER_ROLES else 1.0)
    for _, other in chosen:
        if other.session == match.session:
            worth *= SAME_SESSION
            if abs(other.position - match.position) <= SIDE_BY_SIDE_POSITIONS:
                worth *= SIDE_BY_SIDE
    return worth


COMPARED_PER_RESULT = 8
"""Number of results searched for repetitions, for each result in the answer."""
ALIKE_MAX = 3
"""Maximum results shown that differ only in figures, while there are other results."""
BEGINNING_CHARS = 24
TIE = 1e-6
"""Share by which a score is set below the preceding one, to fix an order."""
_FIGURES = re.compile(r"\d+")


class _ScoredLine(NamedTuple):
    """An original of an episode with its score."""

    score: float
    position: int
    parts: ScoreBreakdown
    chars: int


class _RankKey(NamedTuple):
    """A result with its sort key: by score, then the newer first.

    At equal times an episode comes before the day with the same words, whose `number` is higher. No two have
    the same `number`, so that the results themselves are never compared.
    """

    score: float
    moment: datetime
    """Time of the latest memory in the result."""
    number: int
    result: RankedResult


def rank(
    query: Query, candidates: SearchCandidates, reader: TermReader | None = None
) -> list[RankedResult]:
    """Return the best results, best first, at most one for an episode and its originals.

    If the period asked for has a summary, the summary is the first result. `reader` reads the question's
    terms; if None, a reader is made.
    """
    if not candidates.memories and not candidates.episodes:
        return add_period_summary([], candidates, limit=query.limit)
    reader = reader or TermReader(query.terms, candidates.corpus)
    scores, covered = candidate_scores(query, candidates, reader)
    if query.subject is not None:
        scores = place_by_time(query, scores, candidates)
    matches = {match.position: match for match in candidates.memories}
    results = _order_results(query, candidates, scores, matches)
    lifted = _lift_nearest(results, scores, covered)
    if lifted:
        scores = {**scores, **lifted}
        results = _order_results(query, candidates, scores, matches, lifted.keys())
    if candidates.above:
        results = best_level_only(results, candidates.above)
    results = collapse_repeats(results, matches, limit=query.limit)
    if candidates.summary is None:
        return results
    return add_period_summary(results, candidates, limit=query.limit)


def _order_results(
    query: Query,
    candidates: SearchCandidates,
    scores: Mapping[int, ScoreBreakdown],
    matches: Mapping[int, Match],
    lifted: AbstractSet[int] = frozenset(),
) -> list[RankedResult]:
    """Return all results, best first: single memories, and each episode with its originals.

    An episode whose best memory is `lifted` has the score of that memory alone.
    """
    ordered: list[_RankKey] = []
    lines: dict[int, list[_ScoredLine]] = defaultdict(list)
    ranked: list[tuple[float, int]] = []
    for position, parts in scores.items():
        match = matches[position]
        score = sum(parts)
        ranked.append((score, position))
        if match.episode is not None and query.tier in (None, values.Tier.EPISODIC):
            line = _ScoredLine(score, position, parts, len(match.content))
            lines[match.episode].append(line)
        else:
            result = RankedResult(score, position, parts=parts)
            ordered.append(_RankKey(score, match.created_at, position, result))
    # If only episodes are asked for, their own words must match.
    matched = {} if query.tier is values.Tier.EPISODIC else lines
    if episodes := candidates.episodes.keys() | matched.keys():
        best = {position for _, position in heapq.nlargest(query.limit, ranked)}
    for episode in episodes:
        own = candidates.episodes.get(episode, 0.0)
        if episode in lines:
            result = _episode_result(episode, own, lines[episode], best, lifted)
            latest = max(matches[position].created_at for position, _ in result.lines)
        else:
            score = WEIGHTS.summary_alone * own
            parts = ScoreBreakdown(summary=score)
            result, latest = RankedResult(score, None, episode, (), parts), BEGINNING
        ordered.append(_RankKey(result.score, latest, -episode, result))
    ordered.sort(reverse=True)
    return [place.result for place in ordered]


def _lift_nearest(
    results: Sequence[RankedResult],
    scores: Mapping[int, ScoreBreakdown],
    covered: float,
) -> dict[int, ScoreBreakdown]:
    """Return raised scores for the memories nearest in meaning, to place them among the first results.

    `results` are best first, `scores` by row number. The smaller the best candidate's share of the
    question's keywords (`covered`), the more memories are raised. Empty if any result was placed by
    time or order.
    """
    count = sum(covered <= share for share in WEIGHTS.nearest_below)
    if not count or len(results) <= WEIGHTS.nearest_among:
        return {}
    if any(result.parts.time for result in results):
        return {}
    first = results[: WEIGHTS.nearest_among - count]
    shown = {position for result in first for position in result.positions}
    least = WEIGHTS.nearer * max(
        (scores[position].meaning for position in shown), default=0.0
    )
    # Before the last of the first where others have its score, else after it.
    score = first[-1].score
    if results[len(first)].score >= score * (1 - TIE * count):
        score *= 1 + TIE * (count + 1)
    others = [
        position
        for position, parts in scores.items()
        if position not in shown and sum(parts) < score * (1 - TIE * count)
    ]
    nearest = heapq.nlargest(count, others, key=lambda seq: scores[seq].meaning)
    lifted: dict[int, ScoreBreakdown] = {}
    for rank, position in enumerate(nearest, 1):
        parts = scores[position]
        if parts.meaning and parts.meaning >= least:
            lacking = score * (1 - TIE * rank) - sum(parts)
            lifted[position] = parts._replace(meaning=parts.meaning + lacking)
    return lifted


def _episode_result(
    episode: int,
    own: float,
    lines: Sequence[_ScoredLine],
    best: AbstractSet[int],
    lifted: AbstractSet[int],
) -> RankedResult:
    """Return the result for an episode: its score, and which of its originals to show as lines.

    `own` is the score of the summary's text; the best of `lines`, its matching originals, add to it. Shown are
    the best line, lines at row numbers in `best`, and more while they are short. If the best line is in
    `lifted`, the episode has this line's score alone.
    """
    ranked = sorted(lines, reverse=True)
    chars = list(accumulate(line.chars for line in ranked))
    shown = [
        line
        for rank, line in enumerate(ranked)
        if rank == 0
        or line.position in best
        or (rank < WEIGHTS.lines_max and chars[rank] <= WEIGHTS.lines_chars_max)
    ]
    parts = ranked[0].parts
    if ranked[0].position not in lifted:
        further = sum(line.score for line in ranked[1 : WEIGHTS.lines_max])
        parts = parts._replace(
            summary=WEIGHTS.summary * own, further=WEIGHTS.further_lines * further
        )
    return RankedResult(
        sum(parts),
        episode=episode,
        lines=tuple((line.position, line.score) for line in shown),
        parts=parts,
    )


def best_level_only(
    results: Sequence[RankedResult], above: Mapping[int, int]
) -> list[RankedResult]:
    """Return the results so that no summary is shown together with a roll-up that contains it.

    The one with lines stays, or else the one with the better score. `results` are best first; `above` maps the
    row number of a summary to its parent's.
    """
    covered = {
        parent
        for result in results
        if result.lines
        for parent in _rollups_above(result, above)
    }
    kept: list[RankedResult] = []
    shown: set[int | None] = set()
    for result in results:
        chain = _rollups_above(result, above)
        is_new = result.episode not in covered and shown.isdisjoint(chain)
        if result.lines or is_new:
            kept.append(result)
            covered.update(chain)
            shown.add(result.episode)
    return kept


def _rollups_above(result: RankedResult, above: Mapping[int, int]) -> list[int]:
    """Return the row numbers of the roll-ups above a result's summary, lowest first; empty for a memory."""
    chain: list[int] = []
    parent = above.get(result.episode) if result.episode is not None else None
    while parent is not None and parent not in chain:
        chain.append(parent)
        parent = above.get(parent)
    return chain


def collapse_repeats(
    results: Sequence[RankedResult], matches: Mapping[int, Match], *, limit: int
) -> list[RankedResult]:
    """Return the first `limit` distinct results, with the number of repeats of each.

    The first repeats of a result are added to its lines. At most `ALIKE_MAX` results that differ only in
    figures are shown; others fill places that are left, or count as repeats. `matches` are by row number.
    """
    shown: list[RankedResult] = []
    repeats: dict[int, list[RankedResult]] = defaultdict(list)  # by the rank repeated
    alike: list[tuple[RankedResult, int]] = []  # in all but figures, with a rank
    rank_of_text: dict[str, int] = {}
    beginnings: set[str] = set()  # comparing them takes less time than whole texts
    ranks_of_kind: dict[str, list[int]] = defaultdict(list)  # by text without figures
    is_crowded = False  # whether further results may be alike
    for number, result in enumerate(results):
        is_full = len(shown) == limit
        if is_full and number >= COMPARED_PER_RESULT * limit:
            break
        found = [matches[position] for position in result.positions]
        own = [match for match in found if match.content]
        is_closed = is_full and not is_crowded
        if is_closed and not all(_text_beginning(match) in beginnings for match in own):
            continue  # most results: no repeat of a shown one begins otherwise
        texts = [
            f"{match.source}\n{match.role}\n{match.content.casefold().strip()}"
            for match in own
        ]
        if texts and all(text in rank_of_text for text in texts):
            repeats[rank_of_text[texts[0]]].append(result)
            continue
        if is_closed:
            continue
        kinds = [ranks_of_kind[_FIGURES.sub("0", text)] for text in texts]
        if texts and all(len(ranks) >= ALIKE_MAX for ranks in kinds):
            alike.append((result, kinds[0][0]))
        elif not is_full:
            for text, ranks in zip(texts, kinds, strict=True):
                rank_of_text.setdefault(text, len(shown))
                ranks.append(len(shown))
            is_crowded |= any(len(ranks) >= ALIKE_MAX for ranks in kinds)
            beginnings.update(map(_text_beginning, own))
            shown.append(result)
    room = limit - len(shown)
    for result, rank in alike[room:]:
        repeats[rank].append(result)
    counted = [
        _add_repeats(result, repeats[rank]) if rank in repeats else result
        for rank, result in enumerate(shown)
    ]
    counted += [result for result, _ in alike[:room]]
    return sorted(counted, key=lambda result: -result.score)


def _add_repeats(result: RankedResult, repeats: Sequence[RankedResult]) -> RankedResult:
    """Return a result with the number of its repeats, and with the first of them as lines."""
    lines = list(result.lines)
    for repeat in repeats:
        if repeat.memory is not None:
            lines.append((repeat.memory, repeat.score))
        else:
            lines += repeat.lines
    most = max(len(result.lines), WEIGHTS.lines_max)
    return result._replace(lines=tuple(lines[:most]), duplicates=len(repeats))


def _text_beginning(match: Match) -> str:
    """Return the beginning of a match's text, by which repeats are recognized."""
    return match.content.strip()[:BEGINNING_CHARS].casefold()[:BEGINNING_CHARS]


def are_crowded(texts: Sequence[str], limit: int) -> bool:
    """Return True if too few texts differ in more than figures to fill `limit` results."""
    distinct = set(texts)
    if len(distinct) < limit:
        return True
    kinds: set[str] = set()
    for text in distinct:
        kinds.add(_FIGURES.sub("0", text))
        if ALIKE_MAX * len(kinds) > limit:  # most answers: after a few
            return False
    return True


def _name_member(memory: values.MemoryRecord) -> str | None:
    """Return the name of the member who wrote a memory of a group; None if that is not known."""
    return None if memory.member is None else str(memory.member)


def make_hits(
    query: Query,
    results: Sequence[RankedResult],
    documents: Documents,
    judge: ResultJudge | None = None,
    *,
    owners: Sequence[str | None] = (None,),
    in_group: bool = False,
) -> list[values.Hit]:
    """Return the results as hits with texts and lines, in order, leaving out forgotten memories.

    `documents` has the memories and episodes that still exist, by row number. Only with `judge`
    do the hits have a confidence and a reason. `owners` are the owners of the merged stores. With `in_group`,
    the first of them is a group.
    """
    hits: list[values.Hit] = []
    for result in results:
        owner = owners[store_index_of(result.main_position)]
        names_members = in_group or owner is not None
        memory = documents.memories.get(result.memory or 0)
        episode = documents.episodes.get(result.episode or 0)
        own: dict[str, Any]
        if memory:
            own = {
                "tier": memory.tier,
                "created_at": memory.created_at,
                "role": memory.role,
                "superseded_at": memory.superseded_at,
                "tags": memory.tags,
                "member": _name_member(memory) if names_members else None,
            }
        elif episode:
            own = {
                "tier": values.Tier.EPISODIC,
                "created_at": episode.covers_until,
                "summary_of": episode.summary_of,
            }
        shown = memory or episode
        if shown is None:
            continue
        lines = tuple(
            values.Line(
                id=line.id,
                created_at=line.created_at,
                role=line.role,
                content=line.content,
                score=score,
                superseded_at=line.superseded_at,
                tags=line.tags,
                member=_name_member(line) if names_members else None,
            )
            for position, score in result.lines
            if (line := documents.memories.get(position))
        )
        explanation: dict[str, float] | None = None
        if query.explain:
            parts = result.parts._asdict()
            explanation = {name: part for name, part in parts.items() if part}
        best = lines[0].content if lines and not memory else shown.content
        confidence, why = judge.judge(result, best) if judge else (0.0, "")
        hit = values.Hit(
            id=shown.id,
            score=result.score,
            snippet=cut_snippet(best, query.terms),
            content=shown.content,
            session=shown.session,
            source=shown.source,
            lines=lines,
            confidence=confidence,
            why=why,
            duplicates=result.duplicates,
            explanation=explanation,
            owner=owner,
            **own,
        )
        hits.append(hit)
    return hits
