"""The rules of a verdict, one file each: facts in, findings out."""

from soma.health.rules._registry import EXPLANATIONS, RULES, Rule

__all__ = ["EXPLANATIONS", "RULES", "Rule"]
