"""What notebooks show: HTML, inline SVG, and failures on one screen. Knows no graph."""
