"""How a read is run: decided once, printed and executed as printed."""
