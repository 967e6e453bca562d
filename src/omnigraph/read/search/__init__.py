"""Search: words, phrases, near spellings and vectors, the same with and without an index."""
