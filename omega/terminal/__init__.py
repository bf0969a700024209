"""What every command line here is made of: consoles, options, documents, exit codes."""
