"""The Ukrainian language."""

from __future__ import annotations

from mnemosyned.text.languages.language import Language

UKRAINIAN = Language(
    code="uk",
    stop_words="""
        і в не на що з та як це до але із у за від для про же так його її вони ми
        був була було були при або я він вона якщо є
    """,
    deeds="я ми робив робила робили роблю зробив зробила сталося відбулося",
    months=tuple(
        (
            "січня лютого березня квітня травня червня "
            "липня серпня вересня жовтня листопада грудня"
        ).split()
    ),
    continuations="""
        що далі продовжуй продовжуйте тепер потім наступний крок дякую будь ласка
        добре так готово а і ну
    """,
)
