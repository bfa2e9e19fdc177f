"""How text is read: terms, stems, sentences, dates, secrets and exact values."""
