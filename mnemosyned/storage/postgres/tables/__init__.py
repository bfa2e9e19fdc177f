"""Rows of the tables, and the changes that several ports share."""
