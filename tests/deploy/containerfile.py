"""A Containerfile read, and its steps run in chroots: an image without any tool for containers.

It knows the instructions that ours has, and fails at others. Layers, caches and namespaces of users are
not tested.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from deploy.chroots import Chroot


@dataclass
class Instruction:
    """One instruction: its name, its options such as `--from`, and the rest of its line."""

    name: str
    options: dict[str, str]
    text: str

    @property
    def words(self) -> list[str]:
        """The words of its exec form, or of its line."""
        found: list[str] = (
            json.loads(self.text)
            if self.text.startswith("[")
            else shlex.split(self.text)
        )
        return found


@dataclass
class Stage:
    """What the instructions of a stage make: a root, and what a container of it starts with."""

    root: Chroot
    environment: dict[str, str] = field(default_factory=dict)
    user: str = "0:0"
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)


def read(text: str) -> list[Instruction]:
    """The instructions of a Containerfile, without its comments."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    found = []
    for line in re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines():
        if not line.strip():
            continue
        name, _, rest = line.partition(" ")
        options = {}
        while match := re.match(r"\s*--([\w-]+)=(\S+)\s+", rest):
            options[match[1]] = match[2]
            rest = rest[match.end() :]
        found.append(Instruction(name, options, rest.strip()))
    return found


def build(text: str, context: Path, base: Path, folder: Path) -> dict[str, Stage]:
    """Run all stages, each on a root unpacked from `base` into `folder`; the last is `final`."""
    stages: dict[str, Stage] = {}
    stage = None
    for step in read(text):
        if step.name == "ARG":
            continue
        if step.name == "FROM":
            name = step.words[2] if len(step.words) > 2 else "final"
            stage = stages[name] = Stage(Chroot(folder / name, base))
            continue
        assert stage
        if step.name == "RUN":
            stage.root.run(step.text, stage.environment)
        elif step.name == "COPY":
            source = (
                stages[step.options["from"]].root.root
                if "from" in step.options
                else context
            )
            copy(step.words, source, stage.root.root)
        elif step.name == "ENV":
            stage.environment |= dict(word.split("=", 1) for word in step.words)
        elif step.name == "USER":
            stage.user = step.text
        elif step.name == "CMD":
            stage.command = step.words
        elif step.name == "HEALTHCHECK":
            stage.health = json.loads(step.text.removeprefix("CMD").strip())
        else:
            assert step.name in {"LABEL", "EXPOSE", "STOPSIGNAL"}, step.name
    return stages


def copy(words: list[str], source: Path, root: Path) -> None:
    """Copy files by their patterns, or a folder, as COPY does."""
    *patterns, target = words
    for pattern in patterns:
        found = sorted(source.glob(pattern.lstrip("/")))
        assert found, f"{pattern} is not in {source}"
        for path in found:
            place = root / target.lstrip("/")
            if path.is_dir():
                shutil.copytree(path, place, symlinks=True, dirs_exist_ok=True)
            else:
                place = place / path.name if target.endswith("/") else place
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, place)
