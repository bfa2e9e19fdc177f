"""No type is built by msgspec while another thread can use it, which would crash the process."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "mnemosyned"
WATCH = """
import sys
import msgspec

built = []


def watch(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_name in ("get_class_annotations", "get_dataclass_info"):
        built.append(str(next(iter(frame.f_locals.values()))))


def use(kind):
    sys.setprofile(watch)
    try:
        msgspec.json.decode(b"{}", type=kind)
    except msgspec.ValidationError:
        pass
    finally:
        sys.setprofile(None)
"""
USES = """
from mnemosyned.config.settings import Config
from mnemosyned.models import endpoint, llama_worker
from mnemosyned.models import parallel_worker as worker

use(Config)
for kind in (worker.DigestTask, worker.Digest, llama_worker.WorkerReply, endpoint._ChatAnswer):
    use(kind)
for kind in (llama_worker.LoadModel, llama_worker.CountTokens, llama_worker.Complete, llama_worker.Embed):
    use(kind)
print(*built)
"""
FIRST_USES = """
import random
import sys
import threading
from mnemosyned.errors import MnemosynedError
from mnemosyned.verbs.facade import VERBS
from mnemosyned.verbs.request import parse, parse_result, parse_text

sys.setswitchinterval(0.000001)
together = threading.Barrier(16)
met = []
building = set()
overlaps = []


def watch(frame, event, argument):
    if frame.f_back and frame.f_back.f_code.co_name == "decoder_of":
        if event == "call":
            building.add(threading.get_ident())
            overlaps.append(len(building) > 1)
        elif event == "return":
            building.discard(threading.get_ident())


threading.setprofile(watch)


def use_all(seed):
    verbs = list(VERBS.values())
    random.Random(seed).shuffle(verbs)
    together.wait()
    for verb in verbs:
        for use in (parse, parse_result):
            try:
                use(verb, b'{"memories": [{"content": 1}], "hits": [{}], "id": 1}')
            except (MnemosynedError, ValueError) as error:
                met.append(error)
        try:
            parse_text(verb, {"id": "x", "memories": "x"})
        except MnemosynedError as error:
            met.append(error)


threads = [threading.Thread(target=use_all, args=(seed,)) for seed in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(met) > 16 * len(VERBS), len(overlaps) > len(VERBS), any(overlaps))
"""
UNBUILT = """
class Nested(msgspec.Struct):
    number: int

use(Nested)
print(*built)
"""


def ran(program: str) -> str:
    """What a fresh interpreter prints."""
    run = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True,
        check=True,
        text=True,
    )
    return run.stdout.strip()


@pytest.mark.thorough
def test_settings_and_messages_of_workers_are_built_with_their_import() -> None:
    assert ran(WATCH + USES) == ""


@pytest.mark.thorough
def test_requests_and_results_are_built_by_one_thread_of_many() -> None:
    for _ in range(3):
        assert ran(FIRST_USES) == "True True False"


def test_a_type_that_is_not_built_would_be_noticed() -> None:
    assert "Nested" in ran(WATCH + UNBUILT)


def test_nothing_decodes_into_a_type_but_by_a_decoder_made_so() -> None:
    decodes = re.compile(
        r"msgspec\.(?:json|msgpack)\.decode\(.*type=|^[ \t]+.*\.Decoder\(",
        re.MULTILINE,
    )

    found = {
        (path.name, match[0].strip())
        for path in PACKAGE.rglob("*.py")
        for match in decodes.finditer(path.read_text("utf-8"))
    }

    decoder = "_DECODERS.setdefault(kind, msgspec.json.Decoder("
    assert found == {("request.py", decoder)}
