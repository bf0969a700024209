"""Processes of the operating system: started, watched and stopped."""
