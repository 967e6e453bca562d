"""The shape and the IR of a schema: identity, encoding and reading back."""
