"""What became of a graph over time: differences, the change feed, three-way merges.

Reads two or three states of a graph side by side. Publishes nothing by itself: a merge
hands its changes to the writer like any other write.
"""
