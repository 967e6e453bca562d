"""The server: graphs over HTTP. Thin: parse, call the façade, render."""
