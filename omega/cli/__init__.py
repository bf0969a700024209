"""The command line: a folder for each noun with its verbs, and the screens."""
