"""What stands for the machines: virtual nodes that end tasks when their time or work is up."""
