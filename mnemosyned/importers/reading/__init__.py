"""What every importer reads with: files, text, JSON and archives that may be broken."""
