"""What is published: manifest rows, state, snapshots, lineage and the compare-and-swap.

The manifest is the only door through which anything becomes visible. This
package never touches a data table.
"""
