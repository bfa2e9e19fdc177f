"""The full-screen live view: what the daemon does right now. Only `app` and `screens` need Textual."""
