"""Indexes of tables: building, describing and searching them."""
