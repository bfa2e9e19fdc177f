"""The rules that `make bench-rules` takes out are still what they were called."""

from importlib import import_module

from bench.bench_rules import RULES, Rule
from support.cases import each_case


@each_case("rule", RULES)
def test_what_a_rule_is_replaced_by_can_take_its_place(rule: Rule) -> None:
    for module, name, expression in rule.replaced:
        names = vars(import_module(module))
        value = eval(expression, names)  # noqa: S307 the table of a benchmark

        assert callable(value) == callable(names[name])
