"""Blobs: the content of Blob properties, and how large it is."""
