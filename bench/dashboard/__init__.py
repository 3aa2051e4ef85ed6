"""The dashboard in a browser, with many nodes."""
