"""How a query will be run: access paths and operators, and their explanation."""
