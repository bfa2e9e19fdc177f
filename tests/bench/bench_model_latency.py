"""How long the daemon takes to answer while a model writes, against one that has nothing to do.

The model is once an endpoint that only takes its time, and once a file in llama.cpp, which takes
the processor too: a small one made here, or any other given with `--model`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.corpus import TTL_HALF, Entry, Question, fresh
from bench.daemon import Daemon, EndedEarly, embedded, running
from bench.measure import as_request, asking, fill, latency, say, timed
from bench.report import Report
from support import endpoints
from support.gguf import canned_model

from mnemosyned import Client
from mnemosyned.memory.values import SummarizerState

SIZE, CALLS, ROUNDS = 5_000, 900, 6
GROUPS, GROUP = 300, 3
WARM_UP = 20
BEGIN_S = 300.0
"""A model whose first summary is not kept by then has nothing to be measured with."""
ANSWER_S = "0.2"
"""What the endpoint takes for a summary: short, so that the daemon has most to do beside it."""
RATIO_BAR = 2.0
SUMMARY = "The nightly backup of the archive server ended well."
WINDOW = 8_192
LAYERS, WIDTH = 24, 512
"""A hundred megabytes, all of them read for every token."""

Seconds = dict[str, list[float]]


@contextmanager
def an_endpoint() -> Iterator[dict[str, str]]:
    """A model that takes nothing of this machine."""
    with endpoints.process("--wait", ANSWER_S) as (endpoint, _):
        yield {"MNEMOSYNE_LLM_ENDPOINT": endpoint.url}


def made_here(room: Path) -> dict[str, str]:
    """A model as large as is quickly made, with one true thing to say of each group."""
    file = canned_model(
        room / "made-here.gguf", SUMMARY, context=WINDOW, layers=LAYERS, width_min=WIDTH
    )
    say(f"the model made here has {file.stat().st_size / 1e6:.0f} MB")
    return {
        "MNEMOSYNE_LLM_MODEL_PATH": str(file),
        "MNEMOSYNE_LLM_CONTEXT_TOKENS": str(WINDOW),
    }


def to_consolidate() -> Iterator[Entry]:
    """Small groups of which both models have something to say."""
    happened = datetime.now(UTC) - TTL_HALF - timedelta(days=1)
    for group in range(GROUPS):
        for step in range(GROUP):
            yield Entry(
                content=f"{SUMMARY.rstrip('.')}; step {step} took long, its code is larch-{group}.",
                session=f"ended-{group}",
                source="runs",
                role="tool",
                created_at=happened + timedelta(minutes=step),
            )


def calls(
    client: Client, entries: Sequence[Entry], questions: Sequence[Question]
) -> Seconds:
    """Seconds of memories kept and questions answered, by turns."""
    found: Seconds = {"remember": [], "recall": []}
    for at, entry in enumerate(entries):
        remembered, _ = timed(client.call, as_request(entry))
        recalled, _ = timed(asking(client), questions[at % len(questions)].text)
        if at >= WARM_UP:
            found["remember"].append(remembered)
            found["recall"].append(recalled)
    return found


def under_way(client: Client) -> None:
    """Raise unless the cycle still runs and the model still writes."""
    status = client.status()
    if not status.sleep.running or status.summarizer.state is not SummarizerState.MODEL:
        raise EndedEarly(f"the model should write: {status.sleep}, {status.summarizer}")


def asleep(daemon: Daemon) -> None:
    """Sleep over what is old enough; the end of the daemon ends this too."""
    with daemon.client() as client:
        client.sleep()


def idle(
    database: Path, entries: Sequence[Entry], questions: Sequence[Question]
) -> Seconds:
    """The calls to a daemon on a machine with nothing else to do."""
    with running(database) as daemon, daemon.client() as client:
        return calls(client, entries, questions)


def busy(
    database: Path,
    settings: dict[str, str],
    entries: Sequence[Entry],
    questions: Sequence[Question],
) -> Seconds:
    """The calls to a daemon that sleeps with its model meanwhile."""
    with running(database, settings) as daemon, daemon.client() as client:
        threading.Thread(target=asleep, args=(daemon,), daemon=True).start()
        say("the model begins")
        begun = time.monotonic()
        while not client.status().summarizer.accepted:
            if time.monotonic() - begun > BEGIN_S:
                raise EndedEarly(
                    f"no summary of the model was kept: {client.status().summarizer}"
                )
            time.sleep(0.1)
        say("calling")
        found = calls(client, entries, questions)
        under_way(client)
    return found


def compare(report: Report, model: str, filled: Path, settings: dict[str, str]) -> None:
    """Report the calls beside a model, against the same calls on a machine without one.

    By turns, so that the machine's moods reach both, and not at the same time: a model in
    llama.cpp takes the processor from everybody.
    """
    corpus = fresh(SIZE)
    questions = corpus.questions(CALLS)["person+code"]
    without: Seconds = {"remember": [], "recall": []}
    beside: Seconds = {"remember": [], "recall": []}
    for _ in range(ROUNDS):
        entries = list(islice(corpus, CALLS // ROUNDS + WARM_UP))
        with copied(filled) as database:
            add(without, idle(database, entries, questions))
        with copied(filled) as database:
            add(beside, busy(database, settings, entries, questions))
    show(report, model, without, beside)


@contextmanager
def copied(filled: Path) -> Iterator[Path]:
    """The same memory for a daemon of its own."""
    with tempfile.TemporaryDirectory(prefix="model-") as room:
        yield Path(shutil.copy(filled, room))


def add(all_of_them: Seconds, more: Seconds) -> None:
    for verb, seconds in more.items():
        all_of_them[verb] += seconds


def show(report: Report, model: str, idly: Seconds, busily: Seconds) -> None:
    """Report percentiles and their ratio."""
    rows: list[list[object]] = []
    for verb in idly:
        without, beside = latency(idly[verb]), latency(busily[verb])
        for name, taken in (("idle", without), (model, beside)):
            report.figure(f"{model}/{verb}/{name}/p50_ms", taken.p50_ms)
            report.figure(f"{model}/{verb}/{name}/p95_ms", taken.p95_ms)
            rows.append([verb, name, taken.p50_ms, taken.p95_ms])
        ratio = report.figure(
            f"{model}/{verb}/p95_ratio", beside.p95_ms / without.p95_ms
        )
        report.bar(
            f"{verb} p95 while the {model} writes, over idle", ratio, "<=", RATIO_BAR
        )
    title = f"{CALLS} calls each at {SIZE:,} beside the {model}, milliseconds"
    report.table(title, ["verb", "", "p50", "p95"], rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a GGUF file in the place of the one made here")
    file = parser.parse_args().model
    report = Report("bench-model-latency")
    with tempfile.TemporaryDirectory(prefix="model-") as folder:
        room = Path(folder)
        filled = room / "m.db"
        say(f"remembering {SIZE:,}")
        with embedded(filled) as memory:
            fill(memory, fresh(SIZE))
            fill(memory, to_consolidate())
        with an_endpoint() as settings:
            compare(report, "endpoint", filled, settings)
        if find_spec("llama_cpp"):
            settings = {"MNEMOSYNE_LLM_MODEL_PATH": file} if file else made_here(room)
            compare(report, "llama.cpp", filled, settings)
        else:
            say(
                "only the endpoint was measured: llama.cpp is not here (make install-llm)"
            )
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
