"""The languages in other people's editors and pages: highlighting for Pygments and TextMate."""
