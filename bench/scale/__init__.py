"""What a load costs as it grows: the processes that are measured, and what they are given."""
