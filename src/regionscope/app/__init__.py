"""The explorer: a local server, and the page in `static`."""
