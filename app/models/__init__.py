"""Model files on this machine: headers and the library."""
