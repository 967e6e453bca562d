"""Declared pipelines: a document that maps foreign tables onto types, loaded as one commit."""
