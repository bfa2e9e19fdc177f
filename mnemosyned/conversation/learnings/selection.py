"""Selection of the learnings that a context shows: the ones relevant to the message, best first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from mnemosyned.conversation.learnings.conflicts import remove_cues
from mnemosyned.memory.values import Learning, LearningKind
from mnemosyned.text.terms import gram_text
from mnemosyned.text.tokens import COMMONPLACE_KINDS, tokenize

FIELDS_CACHED_MAX = 2_000

_WORDS = {
    "answers": r"""
        answer\w* repl(?:y|ies) respon[ds]\w* emojis? emoticons? jargon tone flowery concise brief
        apologi\w* greet\w* formal(?:ly)? informal(?:ly)? bullet\ points? explain\w* explanations?
        chit-?chat plain\ english simple\ (?:words|terms) exclamation\ marks? small\ talk
        introductions? pep\ talk language address\ me call\ me metric imperial celsius fahrenheit
        pronouns british american english german french spanish italian portuguese dutch swedish
        polish russian chinese japanese korean antwort\w* duz\w+ siez\w+ floskeln emojis deutsch
        englisch französisch worten höflich\w* répon\w+ tutoie\w* vouvoie\w* français anglais
        allemand émojis? formules respond\w+ respuestas? español inglés alemán florituras rispond\w+
        rispost\w+ italiano inglese tedesco fronzoli responda respostas? português inglês alemão
        floreados antwoord\w* nederlands engels svara svar svenska engelska odpowiada\w* odpowied\w+
        polsk\w+ angielsk\w+ отвеча\w+ ответ\w* по-\w+ски
        回答 英语 德语 表情 答え 絵文字 敬語 英語 대답 답변 존댓말
        """,
    "acts": r"""
        (?:never|don't|do\ not|without\ asking|ask(?:\ me)?\ (?:first|before)
        |must\ not)\b.*\b(?:delet\w+|push\w*|send\w*|shar(?:e|ing)|publish\w*|book\w*|buy\w*
        |spend\w*|deploy\w*|install\w*|e-?mail\w*|call|mention\w*|reveal\w*|pay|commit\w*
        |overwrit\w+|remov\w+|post\w*)
        ask\ (?:me\ )?(?:first|before)
        (?:nie|niemals|frag\w*)\b.*\b(?:lösch\w+|schick\w*|send\w*|buch\w*)
        (?:jamais|demande-moi)\b.*\b(?:supprim\w+|envo\w+)
        (?:nunca|pregúntame)\b.*\b(?:borr\w+|envi\w+)
        (?:никогда|спрашивай)\b.*\b(?:удал\w+|отправл\w+) 删除 削除
        """,
    "code": r"""
        code\w* coding function\w* class(?:es)? method\w* script\w* program\w* parser? compil\w+
        test\w* lint\w* commit\w* branch\w* merge\w* git pull\ request\w* repos?(?:itory|itories)?
        deploy\w* docker\w* kubernetes container\w* api\w* endpoint\w* backend frontend server\w*
        database\w* sql\w* postgres\w* sqlite mysql orms? quer(?:y|ies) schema\w* migration\w*
        python javascript js typescript react\w* vue svelte html css tailwind rust golang java
        kotlin swift ruby php bash shell yaml toml json xml regex\w* tabs? spaces indent\w*
        semicolons? variables? types? typing module\w* package\w* librar(?:y|ies) framework\w*
        dependenc(?:y|ies) bundle\w* npm pnpm pip crate\w* editor\w* ide vim helix vs\ code debug\w*
        bugs? errors? exception\w* stack\ trace\w* refactor\w* hooks? components? plugin\w* bash cli
        terminal cache\w* async thread\w* loop\w* array\w* string\w* docstring\w* type\ annotations?
        inheritance composition rendering websocket\w* webhook\w* gdscript prototype\w* snippet\w*
        config\w* skript\w* funktion\w* klasse\w* datenbank\w* programm\w* fehler\w* fonction\w*
        requêtes? dépendances? función funciones dependencias consulta funzion\w+ dipendenze funç\w+
        dependências functie\w* afhankelijkhed\w+ funktioner beroenden funkcj\w+ zależności
        функци\w+ зависимост\w+ запрос\w* 代码 函数 コード 関数 코드
        """,
    "writing": r"""
        letters? e-?mails? mails? essays? article\w* blog\w* newsletter\w* report\w* summar\w+
        paragraph\w* sentences? wording prose draft\w* proofread\w* headlines? titles? speech\w*
        presentation\w* slides? invitation\w* announcement\w* documentation readme brief\w*
        bericht\w* lettre\w* rapport\w* cartas? informes? letter[ae] relazion\w+ relatórios? brev
        brieven list\w? raport\w* письм\w+ отчёт\w*
        """,
    "food": r"""
        food\w* eat\w* cook\w* recipe\w* meal\w* dinner\w* lunch\w* breakfast\w* dish\w* vegan\w*
        vegetarian\w* meat\w* fish\w* allerg\w* restaurant\w* coffee\w* tea\w* cheese\w* bread\w*
        spicy dessert\w* cake\w* nuts? peanuts? mushroom\w* dairy lentils? soup\w* bak(?:e|ing)\w*
        drinks? wine\w* beer\w* essen koch\w+ rezept\w* gericht\w* fleisch\w* gemüse\w* kaffee
        recette\w* cuisine\w* repas viande\w* café\w* recetas? cocin\w+ comida\w* carne ricett\w+
        cucin\w+ cena receitas? cozinh\w+ comida recept\w* koken eten maträtt\w* laga\ mat
        przepis\w* gotow\w+ рецепт\w* готов\w+ еда 菜 料理 음식
        """,
    "travel": r"""
        travel\w* trips? flights? fly(?:ing)? plane\w* trains? hotel\w* guesthouse\w* hostel\w*
        airbnb\w* seat\w* luggage\w* rucksack\w* backpack\w* vacation\w* holiday\w* airport\w*
        itinerar\w+ cit(?:y|ies) neighbou?rhood\w* beach\w* hik(?:e|es|ing) camping tents?
        booking\w* reise\w* urlaub\w* flug\w* züge? zug bahn pension\w* fenster\w*platz voyage\w*
        vacances trains? avion\w* viaj\w+ vacaciones trenes? tren aviones? viagg\w+ vacanz\w+ treno
        aereo alberg\w+ viage\w+ férias trem avião reis\w* vakantie\w* trein vliegtuig resa\w*
        semester tåg\w* flyg\w* podróż\w* wakacj\w+ pociąg\w* pensjonat\w* поезд\w* отпуск\w*
        отел\w+ путешеств\w+
        """,
    "schedule": r"""
        meeting\w* appointment\w* schedul\w+ calendar\w* agenda\w* reminders? invite\w* termin\w*
        besprechung\w* kalender\w* réunion\w* reunion\w* riunion\w+ reuni\w+ vergadering\w* möten?
        spotka\w+ встреч\w*
        """,
    "looks": r"""
        design\w* layout\w* colou?rs? theme\w* dark\ mode fonts? animation\w* charts? dashboard\w*
        ui\b ux icons? logo\w* palette\w* dialog\w* modal\w* farben? schrift\w* animation\w*
        couleurs? thème\w* colores animaciones colori animazioni cores animações kleuren animaties
        färger animationer kolor\w* animacj\w+ цвет\w* анимаци\w+
        """,
}
ALWAYS = frozenset({"answers", "acts"})
"""Fields that concern every message: how to answer, and what not to do unasked."""


def _compile_field(words: str) -> re.Pattern[str]:
    """Return a pattern that matches any word of a field."""
    joined = re.sub(r"\n\s*\|", "|", words)
    alternatives = re.split(r"(?<!\\)\s+", joined.strip())
    unspaced = [word for word in alternatives if re.match(r"[\u3040-\ud7a3]", word)]
    spaced = [word for word in alternatives if word not in unspaced]
    return re.compile("|".join([rf"\b(?:{'|'.join(spaced)})\b", *unspaced]))


_FIELDS = {name: _compile_field(words) for name, words in _WORDS.items()}


@lru_cache(maxsize=FIELDS_CACHED_MAX)
def find_fields(text: str) -> frozenset[str]:
    """Return the names of the fields that a text is about, such as code or food; cached."""
    low = text.casefold().replace("’", "'")
    return frozenset(name for name, words in _FIELDS.items() if words.search(low))


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningWeights:
    """Worth of a learning for a message by words and fields in common, name and age."""

    shown_max: int = 5
    """Number of learnings in a context."""
    word: int = 3
    """A keyword in common with the message."""
    words_max: int = 3
    """More words in common count no more."""
    field: int = 2
    """A field in common, such as code or food."""
    name: int = 1
    fresh: int = 1
    fresh_for: timedelta = timedelta(days=7)
    pairs_min: int = 2
    """Character pairs in common that make a word, in scripts without spaces."""


WEIGHTS = LearningWeights()


def select_relevant(
    learnings: Iterable[Learning],
    *,
    question: str,
    now: datetime,
    budget_tokens: int,
    count: Callable[[str], int],
    limit: int = WEIGHTS.shown_max,
) -> list[Learning]:
    """Return active learnings that matter to the question: most relevant first, then newest.

    A learning that exceeds the remaining `budget_tokens` is skipped, as a shorter one may fit.
    `count` counts tokens.
    """
    asked = _MessageTerms(question)
    ranks: dict[str, tuple[int, datetime]] = {}
    active: list[Learning] = []
    for learning in learnings:
        shared = asked.rate_shared_terms(learning)
        if learning.superseded_by is None and asked.concerns(learning, shared):
            named = WEIGHTS.name if learning.kind is LearningKind.NAME else 0
            is_fresh = now - learning.created_at <= WEIGHTS.fresh_for
            fresh = WEIGHTS.fresh if is_fresh else 0
            ranks[learning.id] = (shared + named + fresh, learning.created_at)
            active.append(learning)
    shown: list[Learning] = []
    tokens_left = budget_tokens
    for learning in sorted(active, key=lambda each: ranks[each.id], reverse=True):
        size = count(learning.text)
        if size <= tokens_left and len(shown) < limit:
            shown.append(learning)
            tokens_left -= size
    return shown


class _MessageTerms:
    """Keywords and fields of a message, to find the learnings that concern it."""

    def __init__(self, text: str) -> None:
        self._stems = _find_keyword_stems(text)
        self._pairs = frozenset(gram_text(text).split())
        self._fields = find_fields(text) - ALWAYS

    def concerns(self, learning: Learning, shared: int) -> bool:
        """Tell whether a learning matters to the message, or to every message.

        `shared` is the worth of words and fields in common. A preference must share a word or a
        field. An instruction or a lesson matters unless its fields differ from the message's:
        "always use tabs" does not matter to a recipe.
        """
        if learning.kind is LearningKind.NAME or shared:
            return True
        fields = find_fields(learning.text)
        if fields & ALWAYS:
            return True
        about_another = bool(fields and self._fields)
        return learning.kind is not LearningKind.PREFERENCE and not about_another

    def rate_shared_terms(self, learning: Learning) -> int:
        """Return the worth of the words and fields that a learning shares with the message."""
        bare = remove_cues(learning.text)
        shared = len(self._stems & _find_keyword_stems(bare))
        shared += (
            len(self._pairs & frozenset(gram_text(bare).split())) // WEIGHTS.pairs_min
        )
        in_field = bool(self._fields & find_fields(learning.text))
        words = WEIGHTS.word * min(shared, WEIGHTS.words_max)
        return words + (WEIGHTS.field if in_field else 0)


def _find_keyword_stems(text: str) -> frozenset[str]:
    """Return the stems of a text's keywords."""
    return frozenset(
        token.stem for token in tokenize(text) if token.kind not in COMMONPLACE_KINDS
    )
