"""The verbs over the wire."""
