"""The rules that `make bench-rules` takes out are still what they were called."""

from importlib import import_module

import pytest
from bench.bench_rules import RULES, Rule


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_what_a_rule_is_replaced_by_can_take_its_place(rule: Rule) -> None:
    for module, name, expression in rule.replaced:
        names = vars(import_module(module))
        value = eval(expression, names)  # noqa: S307 the table of a benchmark

        assert callable(value) == callable(names[name])
