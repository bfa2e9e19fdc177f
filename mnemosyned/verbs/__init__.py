"""Requests and results of every verb, and the methods made from them."""
