"""The elastic scheduler: jobs of many activities get workers beyond those wanted."""
