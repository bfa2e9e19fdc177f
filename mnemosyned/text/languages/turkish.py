"""The Turkish language."""

from __future__ import annotations

from mnemosyned.text.languages.language import Language

TURKISH = Language(
    code="tr",
    stop_words="""
        ve bir bu da de için ile çok olarak daha en gibi ama ne var o kadar sonra
        olan
    """,
    deeds="ben yaptım yaptın yaptı yaptık yapmıştım oldu",
    months=tuple(
        "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık".split()
    ),
    continuations="""
        devam et şimdi sonra sıradaki adım teşekkürler lütfen tamam evet hazır
    """,
)
