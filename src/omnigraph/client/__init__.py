"""Graphs on a server, with the surface of a graph that is opened here."""
