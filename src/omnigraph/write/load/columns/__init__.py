"""Columnar input: frames, CSV and Parquet columns turned into stored ones."""
