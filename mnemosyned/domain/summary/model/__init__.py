"""Language models' summaries: how they are asked, and what of an answer may stay."""
