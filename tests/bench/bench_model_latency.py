"""How long the daemon takes to answer while a model writes, against one that has nothing to do."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import endpoints
from bench.corpus import TTL_HALF, Entry, Question, fresh
from bench.daemon import Daemon, EndedEarly, embedded, running
from bench.measure import Memories, as_request, asking, fill, latency, say, timed
from bench.report import Report

from mnemosyned import Client
from mnemosyned.domain.ports import SummarizerState

SIZE, CALLS = 5_000, 400
GROUPS, GROUP = 300, 3
WARM_UP = 20
BEGIN_S = 300.0
"""A model whose first summary is not kept by then has nothing to be measured with."""
ANSWER_S = "0.2"
"""What the endpoint takes for a summary: short, so that the daemon has most to do beside it."""
RATIO_BAR = 2.0

Seconds = dict[str, list[float]]


@contextmanager
def model_settings(file: str | None) -> Iterator[dict[str, str]]:
    """A model in a file, which takes the cores too, or an endpoint that only takes its time."""
    if file:
        yield {"MNEMOSYNE_LLM_MODEL_PATH": file}
        return
    with endpoints.process("--wait", ANSWER_S) as (endpoint, _):
        yield {"MNEMOSYNE_LLM_ENDPOINT": endpoint.url}


def to_consolidate() -> Iterator[Entry]:
    """Small groups of which the endpoint quotes a line that is all there is to say."""
    happened = datetime.now(UTC) - TTL_HALF - timedelta(days=1)
    for group in range(GROUPS):
        for step in range(GROUP):
            yield Entry(
                content=f"Run {group} ended well at step {step}, and the code is larch-{group}.",
                session=f"ended-{group}",
                source="runs",
                role="tool",
                created_at=happened + timedelta(minutes=step),
            )


def call_each(memories: Memories, entry: Entry, question: Question) -> tuple[float, float]:
    """Seconds of one memory kept and one question answered."""
    remembered, _ = timed(memories.call, as_request(entry))
    recalled, _ = timed(asking(memories), question.text)
    return remembered, recalled


def by_turns(
    idle: Client, busy: Client, entries: Sequence[Entry], questions: Sequence[Question]
) -> tuple[Seconds, Seconds]:
    """The same calls to both, one after the other, so that the machine's moods reach both."""
    found: tuple[Seconds, Seconds] = (_empty(), _empty())
    for at, entry in enumerate(entries):
        for client, seconds in zip((idle, busy), found, strict=True):
            taken = call_each(client, entry, questions[at % len(questions)])
            if at >= WARM_UP:
                seconds["remember"].append(taken[0])
                seconds["recall"].append(taken[1])
    return found


def _empty() -> Seconds:
    return {"remember": [], "recall": []}


def under_way(client: Client) -> None:
    """Raise unless the cycle still runs and the model still writes."""
    status = client.status()
    if not status.sleep.running or status.summarizer.state is not SummarizerState.MODEL:
        raise EndedEarly(f"the model should write: {status.sleep}, {status.summarizer}")


def asleep(daemon: Daemon) -> None:
    """Sleep over what is old enough; the end of the daemon ends this too."""
    with daemon.client() as client:
        client.sleep()


def measured(calm: Daemon, sleeping: Daemon) -> tuple[Seconds, Seconds]:
    """Calls to both daemons while one of them sleeps with its model."""
    corpus = fresh(SIZE)
    questions = corpus.questions(CALLS)["person+code"]
    entries = list(islice(corpus, CALLS + WARM_UP))
    threading.Thread(target=asleep, args=(sleeping,), daemon=True).start()
    with calm.client() as idle, sleeping.client() as busy:
        say("the model begins")
        begun = time.monotonic()
        while not busy.status().summarizer.accepted:
            if time.monotonic() - begun > BEGIN_S:
                raise EndedEarly(f"no summary of the model was kept: {busy.status().summarizer}")
            time.sleep(0.1)
        say("calling")
        found = by_turns(idle, busy, entries, questions)
        under_way(busy)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a GGUF file instead of the endpoint", default=None)
    file = parser.parse_args().model
    report = Report("bench-model-latency")
    with tempfile.TemporaryDirectory(prefix="model-") as room, ExitStack() as stack:
        first, second = Path(room, "idle", "m.db"), Path(room, "busy", "m.db")
        first.parent.mkdir()
        second.parent.mkdir()
        say(f"remembering {SIZE:,}")
        with embedded(first) as memory:
            fill(memory, fresh(SIZE))
            fill(memory, to_consolidate())
        shutil.copy(first, second)
        settings = stack.enter_context(model_settings(file))
        calm = stack.enter_context(running(first))
        sleeping = stack.enter_context(running(second, settings))
        idle, busy = measured(calm, sleeping)
    rows: list[list[object]] = []
    for verb in idle:
        without, beside = latency(idle[verb]), latency(busy[verb])
        for name, taken in (("idle", without), ("model", beside)):
            report.figure(f"{verb}/{name}/p50_ms", taken.p50_ms)
            report.figure(f"{verb}/{name}/p95_ms", taken.p95_ms)
            rows.append([verb, name, taken.p50_ms, taken.p95_ms])
        ratio = report.figure(f"{verb}/p95_ratio", beside.p95_ms / without.p95_ms)
        report.bar(f"{verb} p95 while a model writes, over idle", ratio, "<=", RATIO_BAR)
    report.table(f"{CALLS} calls each at {SIZE:,}, milliseconds", ["verb", "", "p50", "p95"], rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
