"""Weights of the ranking: what each part of a score is worth."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Bm25Weights:
    """BM25's saturation and length parameters, the weights of other forms, and how much of a text is read."""

    k1: float = 1.2
    b: float = 0.75
    other_form: float = 0.9
    """Weight of another form of a word, relative to the word as typed."""
    other_form_of_code: float = 0.25
    """Weight of another form of a word with a digit, whose ending may matter."""
    synonym: float = 0.9
    """Weight of a word of the same meaning."""
    close_tokens: int = 3
    close_chars: int = 60
    """How near each other two words stand as a phrase."""
    passage: float = 0.8
    """Weight of the best passage of a long text, against the text as a whole.

    A page that answers in one sentence must not lose to a line that has half of the words: on
    records of mixed length .99 of the questions have a hit among ten, .90 without.
    """
    repeats_max: int = 2
    """Maximum number of times that a word counts in a passage.

    Else a page that has a word in every line ranks above the message that says it in ten words.
    """
    passage_chars_min: int = 110
    """Least length of a passage; else it is the average length of a memory."""


BM25_WEIGHTS = Bm25Weights()


@dataclass(frozen=True, slots=True)
class RankingWeights:
    """How much each part adds to a candidate's score, and limits for an episode's lines."""

    bm25: Bm25Weights = BM25_WEIGHTS
    name_parts: float = 0.3
    """Words that are parts of names, as in `retryPolicy`."""
    neighbors: tuple[float, ...] = (0.6, 0.4)
    """A term one and two places away: an answer often follows the line that names its subject."""
    reply: float = 1.3
    """Factor for the lines after one that asks: they answer it."""
    neighbors_within: timedelta = timedelta(minutes=30)
    """Lines further apart are not one conversation, whatever their session is called."""
    phrase: float = 0.25
    """Neighboring words of the question that stand together here, too."""
    session: float = 0.3
    """The best that a sitting says of each term, for each of its lines."""
    sitting_pause: timedelta = timedelta(hours=2)
    """A pause that ends a sitting."""
    sitting_chars: int = 16_000
    """Size of matching lines above which a sitting lends less: a long one says every word."""
    asks: float = 0.2
    """Loss of a text of nothing but questions; others lose by the share that asks."""
    asks_again: float = 0.6
    """Further loss of a question that has no word beyond the one that is asked."""
    little: float = 0.2
    """Loss of chatter, which has many common words and few beside the question's: no answer.

    "Yeah, I'll give it a try!" has the words of a question about what somebody tried. On LoCoMo
    it is worth .007 of recall, on the written year and the mixed year .01 of the first places.
    """
    substance: int = 10
    """Further words that a text needs to lose nothing."""
    terse: int = 4
    """Common words up to which a text is a short note rather than chatter."""
    little_chars: int = 240
    """A longer text has them."""
    leading_share: float = 0.2
    """Share of the best words from which a candidate is read for a time or number it names."""
    says_when: float = 0.4
    """A time in the text, where the question begins with when; or a telephone number, where it asks for one."""
    user: float = 0.4
    """The user's words in a talk with an assistant, or the assistant's where that is asked.

    The user states facts once, next to a request; long answers repeat the words of the topic.
    """
    speaker: float = 0.6
    """The person asked about speaks, or is named in a record of no speaker."""
    speaker_idf: float = 1.0
    """The name itself, as part of who said it."""
    named_by_others: float = 0.5
    """A name in another speaker's words: it is said to that person more often than of them."""
    source: float = 0.4
    """The source that is asked of: a photo, where the question is which photo."""
    time: float = 1.0
    """A moment within the time that the question mentions."""
    time_nearby: float = 0.25
    """A moment shortly before or after it."""
    recency: float = 0.1
    recency_half_days: float = 30
    """Age at which recency is worth half; whole days count, so that answers are repeatable."""
    importance: float = 0.1
    """Importance moves a score by at most half of this share: a prior, never a match."""
    meaning: float = 0.5
    """A cosine of 1, as a share of the score of a text with every word of the question."""
    meaning_uncovered: float = 2.0
    """What is added where no candidate has any keyword of the question: then meaning leads."""
    meaning_power: float = 3.0
    """How fast that falls with the best share of the keywords: words lead where they cover it."""
    meaning_chars: int = 55
    """Characters below which a text is near to many questions by chance."""
    meaning_of_short: float = 0.3
    """Power of a short text's share of these, by which its similarity is multiplied."""
    meaning_nearby: float = 0.45
    """Share that a memory gets of a neighbor's similarity, times the share of a neighbor's words.

    "Yes, since last week!" is near to the question by the line that it answers. Only lines of named persons
    lend any: two records in a row have nothing to do with each other, and an assistant's answer says itself
    what it is about.
    """
    nearest_below: tuple[float, ...] = (0.775, 0.65, 0.525, 0.4)
    """Best shares of the keywords up to which one to four of the nearest come near the top.

    A question in another language, or in other words, shares a word with some memory by chance.
    """
    nearest_among: int = 5
    """Results among which they come."""
    nearer: float = 0.7
    """Least similarity of such a memory, relative to the most similar of the results before it."""
    further_lines: float = 0.05
    """The second and third matching original of an episode."""
    summary: float = 0.25
    """A match in the words of a summary, for its best original."""
    summary_alone: float = 0.5
    """A match in the words of a summary where no original matches."""
    lines_chars_max: int = 400
    """Characters up to which the lines of an episode show more than the best."""
    lines_max: int = 3
    """Originals shown of an episode, and more where each earns a place by itself."""


WEIGHTS = RankingWeights()
