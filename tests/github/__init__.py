"""What GitHub runs for us: held to rules that a reader can check without GitHub."""
