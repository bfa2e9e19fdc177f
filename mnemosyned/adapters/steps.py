"""Work of several calls, written once for blocking callers and for asyncio."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from mnemosyned.domain.errors import MnemosynedError
from mnemosyned.verbs.facade import AsyncCaller, Caller
from mnemosyned.verbs.request import Request

R = TypeVar("R")

Steps = Generator[Request[Any], Any, R]
"""Yields requests, is sent their results or thrown their errors, and returns an `R`."""


def run(steps: Steps[R], caller: Caller) -> R:
    """Take the steps one after the other."""
    proceed: Callable[[], Request[Any]] = steps.__next__
    while True:  # ends with the steps
        try:
            request = proceed()
        except StopIteration as end:
            result: R = end.value
            return result
        try:
            proceed = _sending(steps, caller.call(request))
        except MnemosynedError as error:
            proceed = _throwing(steps, error)


async def run_async(steps: Steps[R], caller: AsyncCaller) -> R:
    """Take the steps one after the other, without blocking the event loop."""
    proceed: Callable[[], Request[Any]] = steps.__next__
    while True:  # ends with the steps
        try:
            request = proceed()
        except StopIteration as end:
            result: R = end.value
            return result
        try:
            proceed = _sending(steps, await caller.call(request))
        except MnemosynedError as error:
            proceed = _throwing(steps, error)


def _sending(steps: Steps[Any], result: object) -> Callable[[], Request[Any]]:
    return lambda: steps.send(result)


def _throwing(steps: Steps[Any], error: MnemosynedError) -> Callable[[], Request[Any]]:
    return lambda: steps.throw(error)
