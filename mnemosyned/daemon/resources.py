"""The one table of all that the daemon answers, by path."""

from __future__ import annotations

from mnemosyned.assembly.build import OpenMemory
from mnemosyned.daemon.api.verbs import verb_resources
from mnemosyned.http_messages import Resource


def resources(memory: OpenMemory) -> dict[str, Resource]:
    """The resources of an open memory."""
    return {
        **verb_resources(memory.service),
    }
