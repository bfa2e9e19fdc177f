"""Reads text: words, sentences, stems, languages, token counts."""
