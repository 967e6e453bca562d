"""The JSON bodies that the command line prints and the server sends, one struct for each."""
