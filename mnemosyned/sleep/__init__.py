"""When and how it sleeps."""
