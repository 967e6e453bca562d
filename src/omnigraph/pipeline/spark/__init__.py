"""Spark itself: sessions, the JVM, settings, tasks and progress."""
