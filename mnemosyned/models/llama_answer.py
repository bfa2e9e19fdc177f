"""Answers of llama.cpp to a conversation, and to one whose answer is already begun."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

ASSISTANT = "assistant"
REPEAT_PENALTY = 1.1
"""Penalty against repetition in an answer that goes on from an opening, which small models give."""
STOPS = ("\n", ". ", " I ", " I'", " me ", " my ", " we ", " our ", " us ")
"""Such an answer is one sentence about others: it ends where it begins to speak as one of them."""
_LABEL = re.compile(r"(\d+(?:\.\d+)?)([KMB])")
_SIZES = {"K": 1e3, "M": 1e6, "B": 1e9}
TEMPLATE = "tokenizer.chat_template"


def answer_of(
    llama: Any,  # noqa: ANN401 an optional package
    messages: Sequence[Mapping[str, str]],
    *,
    max_tokens: int,
    temperature: float,
    seed: int,
) -> str:
    """Return the answer; where the last message is the assistant's, what follows it."""
    opening = messages[-1]["content"] if messages[-1]["role"] == ASSISTANT else ""
    asked = [dict(message) for message in messages[: -1 if opening else None]]
    prompt = _prompt(llama, asked) if opening else ""
    if not prompt:
        completion = llama.create_chat_completion(
            asked, max_tokens=max_tokens, temperature=temperature, seed=seed
        )
        return str(completion["choices"][0]["message"]["content"] or "").strip()
    completion = llama.create_completion(
        f"{prompt}{opening}",
        max_tokens=max_tokens,
        temperature=temperature,
        seed=seed,
        repeat_penalty=REPEAT_PENALTY,
        stop=list(STOPS),
    )
    return str(completion["choices"][0]["text"]).strip()


def _prompt(llama: Any, messages: Sequence[Mapping[str, str]]) -> str:  # noqa: ANN401
    """Return a conversation by the file's own template; empty where it has none."""
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter  # noqa: PLC0415 an extra

    template = llama.metadata.get(TEMPLATE)
    if not template:
        return ""
    begin, end = (
        llama._model.token_get_text(token) if token >= 0 else ""  # noqa: SLF001
        for token in (llama.token_bos(), llama.token_eos())
    )
    formatter = Jinja2ChatFormatter(template=template, bos_token=begin, eos_token=end)
    # The engine puts the first token of all itself.
    return str(formatter(messages=messages).prompt).removeprefix(begin)


def parameters_of(llama: Any) -> int:  # noqa: ANN401
    """Return the number of weights of a model, by its label or as counted; 0 where unknown."""
    label = _LABEL.fullmatch(llama.metadata.get("general.size_label", ""))
    if label:
        return int(float(label[1]) * _SIZES[label[2]])
    with suppress(Exception):
        import llama_cpp  # noqa: PLC0415 an extra

        return int(llama_cpp.llama_model_n_params(llama.model))
    return 0
