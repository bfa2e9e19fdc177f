"""The settings in force while a memory is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mnemosyned.config.settings import Config

if TYPE_CHECKING:
    from mnemosyned.conversation.messages import MessageCounter


class SettingsInForce:
    """The present settings; a reload replaces `config`."""

    def __init__(self, config: Config, *, counter: MessageCounter) -> None:
        self.config = config
        self.counter = counter
        """The token counter that `context.tokenizer` names."""
        self.restart_needed: tuple[str, ...] = ()
        """Changed settings that take effect after a restart only."""
