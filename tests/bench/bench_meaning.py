"""How questions are answered that share few words with the memory, or that nothing answers.

    python tests/bench/bench_meaning.py [--half tune|held] [--no-encoder] [--only SET] [--show]

Sets, each asked before and after a sleep, next to bare FTS5 with the Porter stemmer over the
same memories:

- `crosslingual`: questions in sixteen languages over English records, and `foreign`, English questions over
  records in fifteen languages: share with an answer among five results, by language.
- `otherwords`: questions that share no content word with the record that answers them, likewise; and
  `strangers`, such questions of five people about notes of their own, among the same records.
- `neversaid`: questions about what was never said, share without any result; and questions with an answer, of
  which few may get none.
- `beside`: the same questions of the tune half, asked of a few notes and a talk of long messages.
- `broad`: questions about the order, the course or the whole of something over long talks with an assistant:
  share with any evidence among ten results.

Questions that were answered wrongly are shown of the half `tune` alone.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.meaning_sets import (
    ALL_KINDS,
    HALVES,
    STAGES,
    Asked,
    Results,
    Search,
    fill,
    load_broad_talks,
    load_questions,
    load_records,
    means_by_kind,
    plain_search,
    product_search,
    shown_ids,
    shown_share,
    shows_answer,
    sleep_all,
)
from bench.report import Report
from support.datasets.technical_talks import load_talks
from support.talk_recall import memories_of

from mnemosyned import Memory
from mnemosyned.verbs.memories import Remember

PLAIN = "bare FTS5"
FILES = {
    "crosslingual": ("memory",),
    "foreign": ("memory", "foreign"),
    "otherwords": ("memory", "more"),
    "strangers": ("memory", "more", "strangers"),
    "neversaid": ("memory", "more"),
}
"""By set of questions, the files of records that it is asked of."""
TUNE_ALONE = {"strangers"}
"""Sets without a half `held`."""
BROAD, BESIDE = "broad", "beside"
NOTES, TALK = 8, 1
"""Notes, and the number of the talk, of the memory in which `beside` is asked."""
SURE, BESIDE_SILENT_MIN, BESIDE_SURE_MAX = 0.60, 0.85, 0.03
"""Confidence of a hit that misleads, and bars; in .02 the vectors alone are as sure of a message."""
FEW, MANY = 5, 10
"""How many results count: for a question with one answer, and for a broad one."""
FOUND_MIN = {"crosslingual": 0.80, "foreign": 0.80, "otherwords": 0.80}
UNANSWERED_MIN, SILENCED_MAX = 0.70, 0.03
ABOVE_PLAIN = 0.10

Answers = Mapping[str, Mapping[Asked, Results]]
"""By system and stage, the results of each question."""
Judge = Callable[[Asked, Results], float]


def encoder_settings(*, with_encoder: bool) -> Mapping[str, Any]:
    """Return settings of a memory that searches by meaning too, or by words alone."""
    return {
        "embedding.encoder": "builtin" if with_encoder else "none",
        # No question goes by words alone because the machine is busy.
        "embedding.wait_ms": 60_000,
    }


def ask(search: Search, questions: Sequence[Asked]) -> Mapping[Asked, Results]:
    return {asked: search(asked) for asked in questions}


def answers_of(
    records: Sequence[Remember],
    questions: Sequence[Asked],
    limit: int,
    settings: Mapping[str, Any],
) -> Answers:
    """Ask bare FTS5, and the product before and after a sleep."""
    answers = {PLAIN: ask(plain_search(records, limit), questions)}
    for stage, memory in stages_of(records, settings):
        answers[stage] = ask(product_search(memory, limit), questions)
    return answers


def stages_of(
    records: Sequence[Remember], settings: Mapping[str, Any]
) -> Iterator[tuple[str, Memory]]:
    """Yield a memory with these records before and after a sleep."""
    with (
        tempfile.TemporaryDirectory(prefix="meaning-") as folder,
        Memory(
            Path(folder, "memory.db"), wm_max=1_000_000, auto_sleep=False, **settings
        ) as memory,
    ):
        fill(memory, records)
        for stage in STAGES:
            if stage == "after":
                sleep_all(memory)
            yield stage, memory


def report_beside_talk(report: Report, settings: Mapping[str, Any]) -> None:
    """Ask what was never said in a memory of few notes and a talk of long messages."""
    talk = memories_of(load_talks()[TALK : TALK + 1])
    records = [*load_records("memory")[:NOTES], *talk]
    asked = [each for each in load_questions("neversaid", "tune") if not each.evidence]
    said = {str(message.id) for message in talk}
    for stage, memory in stages_of(records, settings):
        found = [memory.recall(each.text, limit=FEW).hits for each in asked]
        sure = [
            any(hit.confidence >= SURE and shown_ids(hit) & said for hit in hits)
            for hits in found
        ]
        silent = sum(not hits for hits in found) / len(asked)
        report.bar(f"{BESIDE}: no result, {stage}", silent, ">=", BESIDE_SILENT_MIN)
        title = f"{BESIDE}: a message is sure from {SURE:.2f}, {stage}"
        report.bar(title, sum(sure) / len(asked), "<=", BESIDE_SURE_MAX)


def report_means(
    report: Report, title: str, answers: Answers, judge: Judge
) -> dict[str, float]:
    """Show the mean of the judge by kind; return the means over all questions by system."""
    shares = {
        system: means_by_kind(
            {asked: judge(asked, results) for asked, results in given.items()}
        )
        for system, given in answers.items()
    }
    rows: list[list[object]] = [
        [kind, *(shares[system][kind] for system in shares)] for kind in shares[PLAIN]
    ]
    report.table(title, ["kind", *shares], rows)
    for system in shares:
        report.figure(f"{title}: {system}", shares[system][ALL_KINDS])
    return {system: by_kind[ALL_KINDS] for system, by_kind in shares.items()}


def only(answers: Answers, is_chosen: Callable[[Asked], bool]) -> Answers:
    return {
        system: {asked: results for asked, results in given.items() if is_chosen(asked)}
        for system, given in answers.items()
    }


def is_silent(_asked: Asked, results: Results) -> bool:
    return not results


def report_set(report: Report, name: str, half: str, answers: Answers) -> None:
    """Show the figures of a set of questions, and hold them against their bars."""
    answerable = only(answers, lambda asked: bool(asked.evidence))
    title = f"{name}, {half}: found among the first {FEW}"
    found = report_means(report, title, answerable, shows_answer)
    for stage in STAGES:
        if name in FOUND_MIN:
            report.bar(f"{title}, {stage}", found[stage], ">=", FOUND_MIN[name])
    if name != "neversaid":
        return
    unanswerable = only(answers, lambda asked: not asked.evidence)
    for title, part, op, bar in (
        (f"never said, {half}: no result", unanswerable, ">=", UNANSWERED_MIN),
        (f"answerable, {half}: no result", answerable, "<=", SILENCED_MAX),
    ):
        silent = report_means(report, title, part, is_silent)
        for stage in STAGES:
            report.bar(f"{title}, {stage}", silent[stage], op, bar)


def report_broad(report: Report, name: str, half: str, answers: Answers) -> None:
    """Show the figures of broad questions, and hold them against bare FTS5."""
    parts = {
        "within a talk": only(answers, lambda asked: asked.source is not None),
        "over all": only(answers, lambda asked: asked.source is None),
    }
    for scope, part in parts.items():
        title = f"{name}, {half}, {scope}: any evidence among {MANY}"
        found = report_means(report, title, part, shows_answer)
        for stage in STAGES:
            above = round(found[stage] - found[PLAIN], 6)
            report.bar(f"{title}, {stage}, above {PLAIN}", above, ">=", ABOVE_PLAIN)
        title = f"{name}, {half}, {scope}: share of the evidence among {MANY}"
        report_means(report, title, part, shown_share)


def report_faults(
    report: Report, name: str, answers: Answers, texts: Mapping[str, str]
) -> None:
    """Show the questions answered wrongly before a sleep, with the first result."""
    rows: list[list[object]] = []
    for asked, results in answers["before"].items():
        is_right = shows_answer(asked, results) if asked.evidence else not results
        if not is_right:
            first = (
                " | ".join(texts.get(id_, id_) for id_ in sorted(results[0]))
                if results
                else ""
            )
            expected = " | ".join(texts[id_][:80] for id_ in sorted(asked.evidence)[:2])
            rows.append([asked.kind, asked.text[:90], expected, first[:80]])
    report.table(
        f"{name}: wrong", ["kind", "question", "expected", "first result"], rows
    )


def run(
    report: Report,
    name: str,
    halves: Sequence[str],
    settings: Mapping[str, Any],
    *,
    show: bool,
) -> None:
    """Ask a set of questions in one memory, and show the figures of each half."""
    if name == BROAD:
        talks = {half: load_broad_talks(half) for half in HALVES}
        records = [message for messages, _ in talks.values() for message in messages]
        questions = {half: talks[half][1] for half in halves}
    else:
        records = [record for file in FILES[name] for record in load_records(file)]
        questions = {half: load_questions(name, half) for half in halves}
    asked = [asked for half in halves for asked in questions[half]]
    limit, publish = (MANY, report_broad) if name == BROAD else (FEW, report_set)
    answers = answers_of(records, asked, limit, settings)
    for half in halves:
        part = only(answers, set(questions[half]).__contains__)
        publish(report, name, half, part)
        if show and half == "tune":
            texts = {str(record.id): record.content for record in records}
            report_faults(report, name, part, texts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=HALVES, help="only this half")
    parser.add_argument("--no-encoder", action="store_true", help="by words alone")
    parser.add_argument("--only", choices=[*FILES, BESIDE, BROAD], help="only this set")
    parser.add_argument("--show", action="store_true", help="list the faults of `tune`")
    options = parser.parse_args()
    settings = encoder_settings(with_encoder=not options.no_encoder)
    report = Report("bench-meaning")
    halves = [options.half] if options.half else HALVES
    for name in [options.only] if options.only else [*FILES, BESIDE, BROAD]:
        if name == BESIDE:
            if "tune" in halves:
                report_beside_talk(report, settings)
            continue
        asked = [half for half in halves if half == "tune" or name not in TUNE_ALONE]
        if asked:
            run(report, name, asked, settings, show=options.show)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
