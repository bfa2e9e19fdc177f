"""Ports: a store, models and a clock, as the domain needs them."""
