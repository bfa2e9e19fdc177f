"""Every setting, read once and validated: file, then environment, then the caller's own."""

from __future__ import annotations

from mnemosyned.config.loading import (
    API_KEY_VARIABLE as API_KEY_VARIABLE,
    CONFIG_VARIABLE as CONFIG_VARIABLE,
    DEFAULT_MODEL as DEFAULT_MODEL,
    PROJECT_VARIABLE as PROJECT_VARIABLE,
    checked_value as checked_value,
    config_file as config_file,
    load_config as load_config,
    load_with_origins as load_with_origins,
    make_paths_absolute as make_paths_absolute,
    settings_variables as settings_variables,
    value_from_text as value_from_text,
    with_default_model as with_default_model,
)
from mnemosyned.config.settings import (
    BACKUP_SCHEDULES as BACKUP_SCHEDULES,
    ENVIRONMENT_PREFIX as ENVIRONMENT_PREFIX,
    HIDDEN as HIDDEN,
    IN_MEMORY as IN_MEMORY,
    KEYS as KEYS,
    MODEL_TOKENIZER as MODEL_TOKENIZER,
    NO_MODEL as NO_MODEL,
    PATHS as PATHS,
    Config as Config,
    DatabaseLocation as DatabaseLocation,
    EmbeddingConfig as EmbeddingConfig,
    LlmConfig as LlmConfig,
    SettingsInForce as SettingsInForce,
    SleepConfig as SleepConfig,
    changed_keys as changed_keys,
    is_server as is_server,
    keys as keys,
    needs_restart as needs_restart,
    url_in_path as url_in_path,
    value_of as value_of,
    variable as variable,
    without_password as without_password,
)
