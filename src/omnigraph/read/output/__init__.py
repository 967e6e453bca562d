"""Results and exports, as tables, text and JSON."""
