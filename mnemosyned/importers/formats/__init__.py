"""The formats that can be imported, one module each."""
