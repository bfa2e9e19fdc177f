"""The exit codes of the shell client."""

from __future__ import annotations

from mnemosyned.domain.errors import Kind

EXIT_OF_KIND = {
    Kind.INVALID: 2,
    Kind.UNAVAILABLE: 3,
    Kind.NOT_FOUND: 4,
    Kind.CONFLICT: 5,
    Kind.METHOD: 2,
    Kind.INTERNAL: 6,
    Kind.UNAUTHORIZED: 7,
    Kind.FORBIDDEN: 7,
}
EXIT_NOTHING = 1
EXIT_INTERRUPTED = 130
EXIT_CODES = (
    "Exit codes: 0 done; 1 nothing found, or part of it failed; 2 bad input; 3 no daemon "
    "answers; 4 unknown id; 5 conflict, such as a running sleep cycle; 6 the daemon failed; "
    "7 the token is refused, or does not allow it."
)
