"""A daemon behind a URL: its address, its token, and connections to it, for clients of all kinds."""
