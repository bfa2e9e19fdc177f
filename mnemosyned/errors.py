"""The whole error tree: every failure a caller can meet, each with a stable code."""

from __future__ import annotations

from enum import StrEnum

TYPE_CHECKING = False
"""Type checkers take it for true; `typing`, which has it too, takes 5 ms to load in a hook."""

if TYPE_CHECKING:
    from typing import ClassVar

DISK_FULL = "the disk is full: free space, then try again"


class Kind(StrEnum):
    """Kind of an error: what the caller can do. Surfaces map kinds to a status or exit code."""

    INVALID = "invalid"  # correct the request
    UNAUTHORIZED = "unauthorized"  # say who asks
    FORBIDDEN = "forbidden"  # it may not be asked from there
    NOT_FOUND = "not_found"  # ask for something else
    METHOD = "method"  # ask in another way
    CONFLICT = "conflict"  # the present state forbids it
    UNAVAILABLE = "unavailable"  # try again later, or start the daemon
    LIMITED = "limited"  # try again when the limit is free
    INTERNAL = "internal"  # our fault; the log has the traceback


class MnemosynedError(Exception):
    """Root of every error the product raises on purpose.

    `message` is one sentence that says what to do next; `field` names the field at fault.
    """

    code: ClassVar[str] = "internal_error"
    kind: ClassVar[Kind] = Kind.INTERNAL
    retry_after_s: int | None = None
    """After how many seconds the same request may succeed, where that is worth a try."""

    def __init_subclass__(
        cls,
        *,
        code: str | None = None,
        kind: Kind | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        """Set the class's code, kind and pause; those not given are inherited."""
        super().__init_subclass__()
        cls.code = code or cls.code
        cls.kind = kind or cls.kind
        cls.retry_after_s = retry_after_s or cls.retry_after_s

    def __init__(self, message: str, *, field: str | None = None) -> None:
        """Set the message, which says what to do next, and the name of the field at fault."""
        super().__init__(message)
        self.message = message
        self.explained = message
        """For those who run the server: also what a database server says, such as its address."""
        self.field = field


class InvalidRequest(MnemosynedError, code="invalid_request", kind=Kind.INVALID):
    """A field is missing, unknown, of the wrong type or out of its range."""


class MalformedJson(MnemosynedError, code="malformed_json", kind=Kind.INVALID):
    """The body, or a line of an import, is not JSON."""


class MalformedRequest(MnemosynedError, code="malformed_request", kind=Kind.INVALID):
    """The bytes on the socket are no HTTP request, or the request never ended."""


class EmptyContent(MnemosynedError, code="empty_content", kind=Kind.INVALID):
    """There is nothing to remember."""


class ContentTooLarge(MnemosynedError, code="content_too_large", kind=Kind.INVALID):
    """A memory, or a request body, exceeds its configured limit."""


class SecretRefused(MnemosynedError, code="secret_refused", kind=Kind.INVALID):
    """The content contains a secret, and the settings forbid keeping one."""


class InvalidText(MnemosynedError, code="invalid_text", kind=Kind.INVALID):
    """The text is not valid Unicode, or contains a NUL character."""


class InvalidTime(MnemosynedError, code="invalid_time", kind=Kind.INVALID):
    """A time that is malformed, ambiguous or in the future."""


class ConfigInvalid(MnemosynedError, code="config_invalid", kind=Kind.INVALID):
    """The configuration cannot be used; the message names file, line and key."""


class Unauthorized(MnemosynedError, code="unauthorized", kind=Kind.UNAUTHORIZED):
    """A request over TCP has no token, or a wrong one."""


class ScopeMissing(MnemosynedError, code="scope_missing", kind=Kind.FORBIDDEN):
    """The token of the request does not allow this."""


class ForeignOrigin(MnemosynedError, code="foreign_origin", kind=Kind.FORBIDDEN):
    """The request names a host or an origin that is not this machine."""


class NotFound(MnemosynedError, code="not_found", kind=Kind.NOT_FOUND):
    """No memory or episode has this id, or no memory of this owner is the sender's to ask."""


class UnknownVerb(MnemosynedError, code="unknown_verb", kind=Kind.NOT_FOUND):
    """The daemon has no such route."""


class MethodNotAllowed(MnemosynedError, code="method_not_allowed", kind=Kind.METHOD):
    """The route exists and takes another method."""


class IdTaken(MnemosynedError, code="id_taken", kind=Kind.CONFLICT):
    """The id given already belongs to a memory with other content."""


class BatchChanged(MnemosynedError, code="batch_changed", kind=Kind.CONFLICT):
    """The memories of a call have changed since they were read."""


class SleepInProgress(MnemosynedError, code="sleep_in_progress", kind=Kind.CONFLICT):
    """A sleep cycle is running; there is never more than one."""


class CannotUndo(MnemosynedError, code="cannot_undo", kind=Kind.CONFLICT):
    """The cycle was undone already, or moved nothing."""


class WordsPruned(MnemosynedError, code="words_pruned", kind=Kind.CONFLICT):
    """The archive's limits deleted the memory's text."""


class ClockJumped(MnemosynedError, code="clock_jumped", kind=Kind.CONFLICT):
    """The clock jumped ahead, and deletion by age waits until somebody confirms the date."""


class DatabaseInUse(MnemosynedError, code="database_in_use", kind=Kind.CONFLICT):
    """Another process owns the database file."""


class SchemaTooNew(MnemosynedError, code="schema_too_new", kind=Kind.UNAVAILABLE):
    """The database was written by a newer version than this one."""


class ShuttingDown(MnemosynedError, code="shutting_down", kind=Kind.UNAVAILABLE):
    """The daemon is stopping and takes no more writes."""


class DaemonUnreachable(
    MnemosynedError, code="daemon_unreachable", kind=Kind.UNAVAILABLE
):
    """Nothing answers on the socket."""


class ForeignDaemon(MnemosynedError, code="foreign_daemon", kind=Kind.UNAVAILABLE):
    """The other end is not the daemon: its user or certificate differs. Nothing was sent."""


class DaemonBusy(
    MnemosynedError, code="daemon_busy", kind=Kind.UNAVAILABLE, retry_after_s=1
):
    """Too many large requests, or streams, at once: there is no room for one more."""


class LimitReached(
    MnemosynedError, code="limit_reached", kind=Kind.LIMITED, retry_after_s=1
):
    """An owner has used up a limit, such as `requests_per_minute`; the message names the limit."""

    def __init__(
        self, message: str, *, field: str | None = None, retry_after_s: int = 1
    ) -> None:
        """Set the message, and in how many seconds some of the limit is free again."""
        super().__init__(message, field=field)
        self.retry_after_s = retry_after_s


class StorageFailed(MnemosynedError, code="storage_failed", kind=Kind.UNAVAILABLE):
    """The disk is full, the file is damaged, or the database refused the write."""

    def __init__(
        self, message: str, *, field: str | None = None, reason: str = ""
    ) -> None:
        """Set the message, and the bare reason without advice."""
        super().__init__(message, field=field)
        self.reason = reason or message
        """Why, without what it means for the request: for whoever knows more of that."""


class DatabaseUnreachable(StorageFailed, code="database_unreachable", retry_after_s=1):
    """The database server cannot be reached, or ended the connection; it may come back."""


class MemoryBusy(StorageFailed, code="memory_busy", retry_after_s=1):
    """A memory has reached its limit of running requests, or is locked by a transaction."""


class DatabaseReplaced(StorageFailed, code="database_replaced"):
    """The database file was deleted, moved or replaced while it was open."""

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


class PartlyDone(StorageFailed, code="partly_done"):
    """A part of the request is done and on disk, the rest is not; the message says which."""


class NotPurged(StorageFailed, code="not_purged"):
    """Memories were forgotten, but their words can still be read in the file."""


class SummarizerFailed(MnemosynedError, code="summarizer_failed"):
    """A summarizer returned nothing usable."""


class ModelUnavailable(
    SummarizerFailed, code="model_unavailable", kind=Kind.UNAVAILABLE
):
    """The model cannot be reached or run at all; it is not used for a while."""


class EmbedderFailed(MnemosynedError, code="embedder_failed"):
    """An embedding model gave no vector for these texts."""


class FetchFailed(MnemosynedError, code="fetch_failed", kind=Kind.UNAVAILABLE):
    """A model could not be downloaded, or the download is not the requested model."""


class TokenizerUnusable(MnemosynedError, code="tokenizer_unusable", kind=Kind.INVALID):
    """A vocabulary on disk cannot be read, or the package that reads it is missing."""


class RemoteFault(OSError):
    """The daemon behind a URL was not reached, or is not proven to be it; nothing was sent."""

    def __init__(self, words: str, *, is_foreign: bool = False) -> None:
        """Set the message; `is_foreign` is True if a server other than the daemon answered."""
        super().__init__(words)
        self.words = words
        self.is_foreign = is_foreign
        """Whether somebody answered who did not prove to be the daemon."""


def reason_of(error: Exception) -> str:
    """Return why something failed, for logs: the message of our own errors, the type of all others.

    The messages of other errors are left out, as they may quote a memory.
    """
    return error.message if isinstance(error, MnemosynedError) else type(error).__name__


def error_classes_by_code() -> dict[str, type[MnemosynedError]]:
    """Return the error classes by code, such as "not_found", for clients to raise."""
    tree = [MnemosynedError]
    for error in tree:
        tree.extend(error.__subclasses__())
    return {error.code: error for error in tree}
