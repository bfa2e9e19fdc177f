"""Builds the summarizer, and the language model it asks, that the settings name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tzlocal import get_localzone

from mnemosyned.config import API_KEY_VARIABLE, NO_MODEL, Config, LlmConfig
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.domain.ports.models import Summarizer, TextModel
from mnemosyned.sleep.throttle import ForegroundGate
from mnemosyned.summarizers.parallel import ParallelSummarizer

if TYPE_CHECKING:
    from mnemosyned.models.turns import ModelTurns


def make_summarizer(
    config: Config,
    clock: Clock,
    gate: ForegroundGate | None = None,
    *,
    model: TextModel | None = None,
) -> Summarizer:
    """Build the summarizer that is configured, which yields to requests.

    `model` is one that is open already, for what `model_turns` shares. Raises `ConfigInvalid`.
    """
    # Its owner's "yesterday" is a day of the owner's calendar.
    ratio, zone = config.sleep.summary_ratio, get_localzone()
    gate = gate or ForegroundGate()
    rules = ParallelSummarizer(ratio=ratio, zone=zone, present=lambda: gate.active)
    model = model or _language_model(config.llm)
    if model is None:
        return rules
    # Loaded here: without a model the start need not wait for them.
    from mnemosyned.summarizers.fallback import FallbackSummarizer  # noqa: PLC0415
    from mnemosyned.summarizers.llm import ModelSummarizer  # noqa: PLC0415

    primary = ModelSummarizer(
        model=model, ratio=ratio, zone=zone, max_tokens=config.llm.max_tokens
    )
    return FallbackSummarizer(
        primary=primary,
        model=model,
        fallback=rules,
        clock=clock,
        cycle_budget_s=config.llm.cycle_budget_s,
    )


def owner_model(turns: ModelTurns | None, owner: int) -> TextModel | None:
    """The owner's share of the models that owners share; None where they share none."""
    if turns is None:
        return None
    # Loaded here: a memory with one owner shares none.
    from mnemosyned.models.turns import OwnerModel  # noqa: PLC0415

    return OwnerModel(turns, owner)


def model_turns(config: Config) -> ModelTurns | None:
    """Build the models that owners share in turn, where owners are served and there is a model.

    Raises `ConfigInvalid`.
    """
    llm = config.llm
    model = _language_model(llm) if config.owners.serve else None
    if model is None:
        return None
    # Loaded here, as above.
    from mnemosyned.models.turns import ModelTurns  # noqa: PLC0415

    models = [model]
    # A model of this machine takes its memory once more for each; an endpoint has room of its own.
    further = llm.concurrency - 1 if llm.endpoint else 0
    models += filter(None, (_language_model(llm) for _ in range(further)))
    return ModelTurns(models, wait_s=llm.cycle_budget_s)


def _language_model(llm: LlmConfig) -> TextModel | None:
    """The model that is configured. Raises `ConfigInvalid` for one that must not be asked."""
    # Loaded here: a start needs one of them, or none.
    if llm.endpoint:
        from mnemosyned.models.endpoint import EndpointModel, api_key  # noqa: PLC0415 see above

        return EndpointModel(
            endpoint=llm.endpoint,
            model=llm.endpoint_model,
            context_tokens=llm.context_tokens,
            time_limit_s=llm.time_limit_s,
            local_only=llm.local_only,
            key=api_key(llm.api_key_file, variable=os.environ.get(API_KEY_VARIABLE)),
        )
    if llm.model_path and llm.model_path != NO_MODEL:
        from mnemosyned.models.llama import LlamaModel, LlamaOptions  # noqa: PLC0415 see above

        return LlamaModel(
            model_path=Path(llm.model_path).expanduser(),
            options=LlamaOptions(
                context_tokens=llm.context_tokens,
                threads=llm.threads or max(1, (os.cpu_count() or 1) // 2),
                gpu_layers=llm.gpu_layers,
                nice=llm.nice,
                time_limit_s=llm.time_limit_s,
                idle_s=llm.idle_s,
            ),
        )
    return None
