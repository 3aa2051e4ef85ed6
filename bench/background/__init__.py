"""What the plug-in is worth where two of four nodes are busy with other people's programs."""
