"""Places, small control objects, and what can go wrong there."""
