"""Adapters of agent frameworks, one module each; a framework is imported with its module alone."""
