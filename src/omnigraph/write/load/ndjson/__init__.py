"""NDJSON input: lines of envelopes decoded into typed rows."""
