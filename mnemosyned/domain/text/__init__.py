"""How text is read: words, sentences, stems, languages, exact values."""
