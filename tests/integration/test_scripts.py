"""Recall in other scripts: each text is found by a part of it, and by nothing of another's."""

import pytest

from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.memories import Recall, Remember
from mnemosyned.verbs.upkeep import Sleep

TEXTS = {
    "chinese": ("我们周末在西湖边吃了面条", "西湖 面条"),
    "japanese": ("来週の火曜日に歯医者の予約があります", "歯医者の予約"),
    "korean": ("다음 주에 부산으로 여행을 갑니다", "부산 여행"),
    "russian": ("Мы купили новый велосипед в Казани", "велосипед Казани"),
    "arabic": ("وصل الطرد إلى مكتب البريد اليوم", "مكتب البريد"),
    "greek": ("Το ραντεβού είναι στην οδό Ερμού", "ραντεβού ΟΔΌ"),
    "hebrew": ("הפגישה עם דנה נדחתה ליום חמישי", "הפגישה דנה"),
    "hindi": ("अगले हफ्ते दिल्ली में बैठक है", "दिल्ली बैठक"),
    "thai": ("พรุ่งนี้มีประชุมที่เชียงใหม่", "ประชุม เชียงใหม่"),
    "accents": ("Le garçon a oublié son château à Málaga", "chateau Malaga"),
    "german": ("Die Übergabe der Schlüssel ist am Großmarkt", "ÜBERGABE schlussel"),
    "identifier": ("parseInvoiceTotal fails on order QX-48213", "invoice total"),
    "code": ("the heater shows error E-1047b again", "E-1047b"),
}


@pytest.fixture
def filled(service: MemoryService) -> MemoryService:
    for name, (text, _) in TEXTS.items():
        service.call(Remember(text, id=name, session=name))
    return service


@pytest.mark.parametrize("script", TEXTS)
def test_a_text_is_found_by_its_words(filled: MemoryService, script: str) -> None:
    hits = filled.call(Recall(TEXTS[script][1])).hits

    assert hits[0].id == script


@pytest.mark.parametrize("script", TEXTS)
def test_a_text_is_found_alike_after_sleep(filled: MemoryService, script: str) -> None:
    before = [hit.id for hit in filled.call(Recall(TEXTS[script][1])).hits]

    filled.call(Sleep(force=True))

    after = filled.call(Recall(TEXTS[script][1])).hits
    assert after[0].lines[0].id == before[0]


@pytest.mark.parametrize(
    "question", ["咖啡", "кофе", "قهوة", "καφές", "קפה", "कॉफ़ी", "กาแฟ", "커피"]
)
def test_a_question_without_a_match_finds_nothing(
    filled: MemoryService, question: str
) -> None:
    assert filled.call(Recall(question)).hits == []
