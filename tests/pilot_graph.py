"""The graph of the worked examples: its schema S and its data D, with edge ids that are known."""

from __future__ import annotations

SCHEMA = """\
node Pilot { name: String @key  hours: I32?  ratings: [String]?  hired: Date? }
node Base { name: String @key }
edge Trains: Pilot -> Pilot { since: Date?  note: String? }
edge StationedAt: Pilot -> Base
"""

DATA = """\
{"type": "Pilot", "data": {"name": "Ann", "hours": 30, "ratings": ["a","b"], "hired": "2020-01-02"}}
{"type": "Pilot", "data": {"name": "Ben", "hours": 25, "ratings": ["b"]}}
{"type": "Pilot", "data": {"name": "Cat", "hours": 35}}
{"type": "Pilot", "data": {"name": "Dan", "hours": null}}
{"type": "Base", "data": {"name": "Arda"}}
{"type": "Base", "data": {"name": "Brell"}}
{"edge": "Trains", "from": "Ann", "to": "Ben", "data": {"id": "e1", "since": "2020-05-01"}}
{"edge": "Trains", "from": "Ann", "to": "Cat", "data": {"id": "e2"}}
{"edge": "Trains", "from": "Ben", "to": "Dan", "data": {"id": "e3"}}
{"edge": "Trains", "from": "Ann", "to": "Ben", "data": {"id": "e4", "since": "2024-01-01"}}
{"edge": "StationedAt", "from": "Ann", "to": "Arda", "data": {"id": "w1"}}
{"edge": "StationedAt", "from": "Ben", "to": "Brell", "data": {"id": "w2"}}
"""
