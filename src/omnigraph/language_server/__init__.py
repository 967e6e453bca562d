"""The language server of editors: what is said of `.pg` and `.gq` files while they are written."""
