"""Views of pycollective for other tools; nothing in the package itself needs them."""
