"""What is published: built, installed where nothing else is, and tried; `make release-check`."""
