"""The whole error tree: every failure a caller can meet, each with a stable code."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar


class Kind(StrEnum):
    """Kind of an error, by what the caller can do about it; surfaces map it to a status or exit code."""

    INVALID = "invalid"  # mend the request
    UNAUTHORIZED = "unauthorized"  # say who asks
    FORBIDDEN = "forbidden"  # it may not be asked from there
    NOT_FOUND = "not_found"  # ask for something else
    METHOD = "method"  # ask in another way
    CONFLICT = "conflict"  # the state forbids it as it stands
    UNAVAILABLE = "unavailable"  # try again later, or start the daemon
    INTERNAL = "internal"  # our fault; the log has the traceback


class MnemosynedError(Exception):
    """Root of every error the product raises on purpose.

    `message` is one sentence that says what to do next; `field` names the field at fault.
    """

    code: ClassVar[str] = "internal_error"
    kind: ClassVar[Kind] = Kind.INTERNAL
    retry_after_s: ClassVar[int | None] = None
    """After how many seconds the same request may succeed, where that is worth a try."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        """Set the message, which says what to do next, and the name of the field at fault."""
        super().__init__(message)
        self.message = message
        self.field = field


class InvalidRequest(MnemosynedError):
    """A field is missing, unknown, of the wrong type or out of its range."""

    code = "invalid_request"
    kind = Kind.INVALID


class MalformedJson(MnemosynedError):
    """The body, or a line of an import, is not JSON."""

    code = "malformed_json"
    kind = Kind.INVALID


class MalformedRequest(MnemosynedError):
    """The bytes on the socket are no HTTP request, or the request never ended."""

    code = "malformed_request"
    kind = Kind.INVALID


class EmptyContent(MnemosynedError):
    """There is nothing to remember."""

    code = "empty_content"
    kind = Kind.INVALID


class ContentTooLarge(MnemosynedError):
    """A memory, or a request body, exceeds its configured limit."""

    code = "content_too_large"
    kind = Kind.INVALID


class SecretRefused(MnemosynedError):
    """The content holds a secret, and the settings forbid keeping one."""

    code = "secret_refused"
    kind = Kind.INVALID


class InvalidText(MnemosynedError):
    """The text is not valid Unicode, or holds a NUL character."""

    code = "invalid_text"
    kind = Kind.INVALID


class InvalidTime(MnemosynedError):
    """A time that is not one, that can be read in two ways, or that lies in the future."""

    code = "invalid_time"
    kind = Kind.INVALID


class ConfigInvalid(MnemosynedError):
    """The configuration cannot be used; the message names file, line and key."""

    code = "config_invalid"
    kind = Kind.INVALID


class Unauthorized(MnemosynedError):
    """A request over TCP has no token, or a wrong one."""

    code = "unauthorized"
    kind = Kind.UNAUTHORIZED


class ScopeMissing(MnemosynedError):
    """The token of the request does not allow this."""

    code = "scope_missing"
    kind = Kind.FORBIDDEN


class ForeignOrigin(MnemosynedError):
    """The request names a host or an origin that is not this machine."""

    code = "foreign_origin"
    kind = Kind.FORBIDDEN


class NotFound(MnemosynedError):
    """No memory or episode has this id."""

    code = "not_found"
    kind = Kind.NOT_FOUND


class UnknownVerb(MnemosynedError):
    """The daemon has no such route."""

    code = "unknown_verb"
    kind = Kind.NOT_FOUND


class MethodNotAllowed(MnemosynedError):
    """The route exists and takes another method."""

    code = "method_not_allowed"
    kind = Kind.METHOD


class IdTaken(MnemosynedError):
    """The id given already belongs to a memory with other content."""

    code = "id_taken"
    kind = Kind.CONFLICT


class BatchChanged(MnemosynedError):
    """The memories of a call changed since they were read."""

    code = "batch_changed"
    kind = Kind.CONFLICT


class SleepInProgress(MnemosynedError):
    """A sleep cycle is running; there is never more than one."""

    code = "sleep_in_progress"
    kind = Kind.CONFLICT


class CannotUndo(MnemosynedError):
    """The cycle was undone already, or moved nothing."""

    code = "cannot_undo"
    kind = Kind.CONFLICT


class WordsPruned(MnemosynedError):
    """The archive's retention gave the memory's words up."""

    code = "words_pruned"
    kind = Kind.CONFLICT


class ClockJumped(MnemosynedError):
    """The clock is further ahead than can be, so what is deleted by age waits to be confirmed."""

    code = "clock_jumped"
    kind = Kind.CONFLICT


class DatabaseInUse(MnemosynedError):
    """Another process owns the database file."""

    code = "database_in_use"
    kind = Kind.CONFLICT


class SchemaTooNew(MnemosynedError):
    """The database was written by a newer version than this one."""

    code = "schema_too_new"
    kind = Kind.CONFLICT


class ShuttingDown(MnemosynedError):
    """The daemon is stopping and takes no more writes."""

    code = "shutting_down"
    kind = Kind.UNAVAILABLE


class DaemonUnreachable(MnemosynedError):
    """Nothing answers on the socket."""

    code = "daemon_unreachable"
    kind = Kind.UNAVAILABLE


class ForeignDaemon(MnemosynedError):
    """Who answers is not proven to be the daemon: another user, or another certificate; nothing was sent."""

    code = "foreign_daemon"
    kind = Kind.UNAVAILABLE


class DaemonBusy(MnemosynedError):
    """Too many large requests, or streams, at once: there is no room for one more."""

    code = "daemon_busy"
    kind = Kind.UNAVAILABLE
    retry_after_s = 1


class StorageFailed(MnemosynedError):
    """The disk is full, the file is damaged, or the database refused the write."""

    code = "storage_failed"
    kind = Kind.UNAVAILABLE

    def __init__(
        self, message: str, *, field: str | None = None, reason: str = ""
    ) -> None:
        """Set the message, and the bare reason without advice."""
        super().__init__(message, field=field)
        self.reason = reason or message
        """Why, without what it means for the request: for whoever knows more of that."""


class DatabaseUnreachable(StorageFailed):
    """The database server cannot be reached, or ended the connection; it may come back."""

    code = "database_unreachable"
    retry_after_s = 1


class MemoryBusy(StorageFailed):
    """A memory has as many requests at work as it may, or another transaction keeps it locked."""

    code = "memory_busy"
    retry_after_s = 1


class DatabaseReplaced(StorageFailed):
    """The database file was deleted, moved or replaced while it was open."""

    code = "database_replaced"

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        reason: str = "",
        saved: bool = True,
    ) -> None:
        """Set the message; `saved` is False if acknowledged writes may be lost at a restart."""
        super().__init__(message, field=field, reason=reason)
        self.saved = saved
        """Whether all that was acknowledged is in a file, so that a restart loses nothing."""


class PartlyDone(StorageFailed):
    """A part of the request is done and on disk, the rest is not; the message says which."""

    code = "partly_done"


class NotPurged(StorageFailed):
    """Memories were forgotten, but their words can still be read in the file."""

    code = "not_purged"


class SummarizerFailed(MnemosynedError):
    """A summarizer gave nothing that can be kept."""

    code = "summarizer_failed"
    kind = Kind.INTERNAL


class ModelUnavailable(SummarizerFailed):
    """The model cannot be reached or run at all, whatever it is asked: worth leaving alone."""

    code = "model_unavailable"
    kind = Kind.UNAVAILABLE


class EmbedderFailed(MnemosynedError):
    """An embedding model gave no vector for these texts."""

    code = "embedder_failed"
    kind = Kind.INTERNAL


class FetchFailed(MnemosynedError):
    """A model could not be fetched, or what came is not what was wanted."""

    code = "fetch_failed"
    kind = Kind.UNAVAILABLE


class TokenizerUnusable(MnemosynedError):
    """A vocabulary on disk cannot be read, or the package that reads it is missing."""

    code = "tokenizer_unusable"
    kind = Kind.INVALID


class RemoteFault(OSError):
    """The daemon behind a URL was not reached, or is not proven to be it; nothing was sent."""

    def __init__(self, words: str, *, is_foreign: bool = False) -> None:
        """Set the message; `is_foreign` is True if another server than the daemon answered."""
        super().__init__(words)
        self.words = words
        self.is_foreign = is_foreign
        """Whether somebody answered who did not prove to be the daemon."""


def reason_of(error: Exception) -> str:
    """Return why something failed, for logs: the message of an own error, or else the error's type.

    The words of a model's or a parser's error may quote a memory.
    """
    return error.message if isinstance(error, MnemosynedError) else type(error).__name__


def error_classes_by_code() -> dict[str, type[MnemosynedError]]:
    """Return all error classes by their code, so that a client can raise the daemon's error."""
    tree = [MnemosynedError]
    for error in tree:
        tree.extend(error.__subclasses__())
    return {error.code: error for error in tree}
