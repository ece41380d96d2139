"""What is remembered between polls: increases, windows, backends, callers. Values in, frozen values out."""
