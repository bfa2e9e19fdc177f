"""What a summary keeps, and what a model's summary may say."""
