"""The parts of every command line here: consoles, options, documents, exit codes."""
