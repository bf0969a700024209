"""What is read from a store to be shown, as values that a command line or a web page renders."""
