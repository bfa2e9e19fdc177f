"""The parts of a store that both engines have alike: sessions, statements, values from rows."""
