"""Settings of a test, and their changes, as a reload makes them."""

from pathlib import Path
from typing import Any

import msgspec

from mnemosyned.config.settings import Config, EmbeddingConfig, SettingsInForce
from mnemosyned.service.context import default_counter


def settings_in_force(values: dict[str, Any] | None = None) -> SettingsInForce:
    """Settings by their dotted keys, without cycles in the background."""
    settings = SettingsInForce(Config(), counter=default_counter())
    change(settings, {"auto_sleep": False, **(values or {})})
    return settings


def config_by_words(
    database: Path | str,
    *,
    auto_sleep: bool = False,
    **fields: Any,  # noqa: ANN401
) -> Config:
    """Settings of a memory without an encoder, whose cycles begin when they are called for."""
    return Config(
        database=str(database),
        auto_sleep=auto_sleep,
        embedding=EmbeddingConfig(encoder="none"),
        **fields,
    )


def change(settings: SettingsInForce, values: dict[str, Any]) -> None:
    """Put other values in force, by their dotted keys."""
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        changes = {name: value}
        if section:
            changed = msgspec.structs.replace(
                getattr(settings.config, section), **changes
            )
            changes = {section: changed}
        settings.config = msgspec.structs.replace(settings.config, **changes)
