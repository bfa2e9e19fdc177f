"""What each rule for natural language buys: every benchmark it could matter to, with and without it.

    python tests/bench/bench_rules.py --data path/to/datasets [--only "sittings,compounds"] [--benches "talks"]

Each rule is taken out by replacing one function (`ablation/sitecustomize.py`), in the process of the
benchmark and in all that it starts. Shown is the figure that falls furthest without the rule, and the
one that rises most: which of them is the better is for the reader, as some count faults (`repeated`,
`dangling`). A rule that moves every figure by less than 0.003, and that is no promise, is not worth its
lines.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.report import Report

HERE = Path(__file__).resolve().parent
WORTH_MIN = 0.003
"""Of a share; how far a rule moves one figure at least."""
BENCH_MINUTES_MAX = 60
SHARE_MAX = 1.0
"""Figures above are sizes and counts, which say nothing of a rule."""
_TIME = re.compile(r"(?<![a-z'])m?s(?![a-z])")
"""Names of figures that are times."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, how to do without it, and the benchmarks that could notice."""

    name: str
    replaced: tuple[tuple[str, str, str], ...]
    """Module, name, and an expression for the value without the rule."""
    benches: tuple[str, ...]


SEARCH = ("locomo", "life", "talks", "times")
SUMMARY = ("summaries", "locomo", "life", "talks")
LEARNED = ("learnings",)
_SCORING = "mnemosyned.search.scoring"
_QUERY = "mnemosyned.search.query"
_QUESTIONS = "mnemosyned.text.dates.questions"
_STEMS = "mnemosyned.text.terms"
_TERMS = "mnemosyned.text.terms"
_STATEMENTS = "mnemosyned.summary.statements"
_RECOGNIZE = "mnemosyned.conversation.learnings.recognize"
_PASSING = "mnemosyned.conversation.learnings.rules"
_CHECK = "mnemosyned.summary.grounding.check"

RULES = (
    Rule(
        "sittings",
        (
            (
                _SCORING,
                "sitting_scores",
                "lambda matches, terms, sums: dict(sums)",
            ),
        ),
        SEARCH,
    ),
    Rule("neighbors", ((_SCORING, "neighbor_scores", "lambda *_: {}"),), SEARCH),
    Rule(
        "little content",
        (
            (
                _SCORING,
                "_penalize_little_content",
                "lambda query, scores, matches: dict(scores)",
            ),
        ),
        SEARCH,
    ),
    Rule("texts that ask", ((_SCORING, "question_share", "lambda text: 0.0"),), SEARCH),
    Rule(
        "repeated results",
        (
            (
                "mnemosyned.search.ranking",
                "collapse_repeats",
                "lambda results, matches, *, limit: list(results[:limit])",
            ),
        ),
        SEARCH,
    ),
    Rule(
        "asked source",
        ((_QUERY, "asked_source", "lambda text: AskedSource()"),),
        SEARCH,
    ),
    Rule(
        "expected answer",
        ((_QUERY, "expected_answer", "lambda question: ExpectedAnswer()"),),
        SEARCH,
    ),
    Rule(
        "compounds",
        (
            (_TERMS, "split_compound", "lambda word: ()"),
            (_TERMS, "join_compounds", "lambda text, content: ()"),
        ),
        SEARCH,
    ),
    Rule("irregular forms", ((_STEMS, "irregular_forms", "lambda word: ()"),), SEARCH),
    Rule(
        "synonyms",
        ((_STEMS, "synonyms_of", "lambda word: ()"),),
        (*SEARCH, "meaning"),
    ),
    Rule("accent variants", ((_STEMS, "accent_variants", "lambda word: ()"),), SEARCH),
    Rule(
        "times in questions",
        (
            (
                _QUESTIONS,
                "parse_times",
                "lambda text, now: QuestionTimes(remaining_text=text, subject_text=text)",
            ),
        ),
        SEARCH,
    ),
    Rule(
        "times in memories",
        ((_QUESTIONS, "mentioned_spans", "lambda text, said_at: ()"),),
        SEARCH,
    ),
    Rule(
        "times in ten languages",
        ((_QUESTIONS, "translate_times", "lambda text: text"),),
        SEARCH,
    ),
    Rule(
        "records",
        (
            (
                "mnemosyned.summary.records.summarize",
                "summarize_records",
                "lambda memories, *, zone: RecordSummary((), tuple(memories))",
            ),
        ),
        SUMMARY,
    ),
    Rule("courtesies", ((_STATEMENTS, "is_courtesy", "lambda words: False"),), SUMMARY),
    Rule(
        "sentences that lean back",
        ((_STATEMENTS, "refers_back", "lambda sentence: False"),),
        SUMMARY,
    ),
    Rule(
        "openers",
        ((_STATEMENTS, "remove_opener", "lambda sentence: sentence"),),
        SUMMARY,
    ),
    Rule(
        "clause borders",
        (
            (
                _STATEMENTS,
                "shorten_at_clause",
                "lambda text, chars_max: text[:chars_max].rstrip()",
            ),
        ),
        SUMMARY,
    ),
    Rule(
        "key facts",
        (("mnemosyned.conversation.key_facts", "score_fact", "lambda fact: 1.0"),),
        ("replay",),
    ),
    Rule(
        "unknown names",
        ((_CHECK, "find_unknown_names", "lambda *_: ()"),),
        ("grounding",),
    ),
    Rule(
        "numbers in words",
        (
            (
                "mnemosyned.summary.grounding.values",
                "read_number_words",
                "lambda text: iter(())",
            ),
        ),
        ("grounding",),
    ),
    Rule(
        "orders",
        ((_RECOGNIZE, "_recognize_sentence_kind", "lambda *_: None"),),
        LEARNED,
    ),
    *(
        Rule(
            f"preferences in passing in {language}",
            (
                (
                    _PASSING,
                    "LANGUAGES",
                    f"tuple(name for name in LANGUAGES if name != {language!r})",
                ),
            ),
            LEARNED,
        )
        for language in (
            "english",
            "german",
            "french",
            "spanish",
            "italian",
            "portuguese",
            "dutch",
            "swedish",
            "polish",
            "russian",
        )
    ),
)
"""Secrets and their masking are a promise: no benchmark weighs them, `tests/domain` holds them."""


def command(bench: str, data: Path) -> list[str]:
    """The program of a benchmark with its data."""
    options = {
        "grounding": ["--data", data / "locomo" / "locomo10.json"],
        "meaning": [],
        "learnings": ["--data", data / "locomo" / "locomo10.json"],
        "life": ["--data", data / "lifebench"],
        "locomo": ["--no-peer", "--data", data / "locomo" / "locomo10.json"],
        "replay": ["--data", data / "locomo" / "locomo10.json"],
        "summaries": ["--data", data / "locomo" / "locomo10.json"],
        "talks": [],
        "times": ["--data", data / "lifebench"],
    }[bench]
    return [sys.executable, str(HERE / f"bench_{bench}.py"), *map(str, options)]


def shares(bench: str, data: Path, rule: Rule | None) -> dict[str, float]:
    """The figures of a benchmark that are shares, with all rules but one."""
    with tempfile.TemporaryDirectory() as output:
        environment = {
            **os.environ,
            "BENCH_OUTPUT": output,
            "PYTHONPATH": os.pathsep.join(
                [str(HERE / "ablation"), os.environ.get("PYTHONPATH", "")]
            ),
            "MNEMOSYNED_WITHOUT": json.dumps(rule.replaced if rule else []),
        }
        ran = subprocess.run(
            command(bench, data),
            capture_output=True,
            check=False,
            env=environment,
            text=True,
            timeout=BENCH_MINUTES_MAX * 60,
        )
        written = list(Path(output).glob("*.json"))
        if not written:  # it ends with 1 where a target is missed
            raise SystemExit(f"bench_{bench} without {rule}:\n{ran.stderr[-2000:]}")
        report = json.loads(written[0].read_text("utf-8"))
    figures: dict[str, float] = report["figures"]
    figures |= {bar["name"]: bar["value"] for bar in report["bars"]}
    return {
        name: value
        for name, value in figures.items()
        if 0 <= value <= SHARE_MAX and not _TIME.search(name)
    }


def is_count(*values: float) -> bool:
    """Whether a figure that is no more than 1 is a number of things nevertheless."""
    return all(value == int(value) for value in values) and max(values) != min(values)


def chosen(names: str) -> Sequence[Rule]:
    """The rules of these names; all without any."""
    wanted = {name.strip() for name in names.split(",") if name.strip()}
    known = {rule.name for rule in RULES}
    if unknown := wanted - known:
        raise SystemExit(f"no rules {sorted(unknown)}; there are {sorted(known)}")
    return [rule for rule in RULES if not wanted or rule.name in wanted]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data", type=Path, required=True)
    arguments.add_argument("--only", default="", help="names of rules, with commas")
    arguments.add_argument("--benches", default="", help="names, with commas")
    options = arguments.parse_args()

    report = Report("rules")
    whole: dict[str, dict[str, float]] = {}
    rows: list[list[object]] = []
    for rule in chosen(options.only):
        bought: dict[str, float] = {}
        for bench in rule.benches:
            if options.benches and bench not in options.benches.split(","):
                continue
            if bench not in whole:
                whole[bench] = shares(bench, options.data, None)
            without = shares(bench, options.data, rule)
            bought |= {
                f"{bench}: {name}": value - without[name]
                for name, value in whole[bench].items()
                if name in without and not is_count(value, without[name])
            }
        if not bought:
            continue
        most = max(bought, key=lambda name: bought[name])
        least = min(bought, key=lambda name: bought[name])
        report.figure(rule.name, bought[most])
        report.figure(f"{rule.name}, least", bought[least])
        moved = max(bought[most], -bought[least])
        verdict = "" if moved >= WORTH_MIN else "yes"
        rows.append(
            [
                rule.name,
                f"{bought[most]:+.3f}",
                most if bought[most] else "",
                f"{bought[least]:+.3f}",
                least if bought[least] else "",
                verdict,
            ]
        )
        print(*rows[-1], sep=" | ", flush=True)
    report.table(
        "What each rule buys",
        ["rule", "most", "of", "least", "of", f"under {WORTH_MIN}"],
        rows,
    )
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
