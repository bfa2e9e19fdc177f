"""No type is left to be built by msgspec at its first use, where two threads would crash."""

import re
import subprocess
import sys
from pathlib import Path

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
from mnemosyned.config import Config
from mnemosyned.verbs.request import result_type
from mnemosyned.models import endpoint, llama_worker
from mnemosyned.summarizers import parallel_worker as worker
from mnemosyned.verbs.facade import VERBS

for verb in VERBS.values():
    use(verb)
    use(result_type(verb))
use(Config)
for kind in (worker.Task, worker.Answer, llama_worker.Reply, endpoint._Answer):
    use(kind)
for kind in (llama_worker.Load, llama_worker.CountTokens, llama_worker.Complete, llama_worker.Embed):
    use(kind)
print(*built)
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


def test_every_request_and_result_is_built_with_its_import() -> None:
    assert ran(WATCH + USES) == ""


def test_a_type_that_is_not_built_would_be_noticed() -> None:
    assert "Nested" in ran(WATCH + UNBUILT)


def test_nothing_decodes_into_a_type_but_by_a_decoder_made_at_import() -> None:
    decodes = re.compile(
        r"msgspec\.(?:json|msgpack)\.decode\([^)]*type=|^\s+.*\.Decoder\(", re.MULTILINE
    )

    found = {
        (path.name, match[0].strip())
        for path in PACKAGE.rglob("*.py")
        for match in decodes.finditer(path.read_text())
    }

    assert found == {("request.py", "_DECODERS[kind] = msgspec.json.Decoder(")}
