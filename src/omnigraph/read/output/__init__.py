"""What a read gives: rows, exports, and how they are shown."""
