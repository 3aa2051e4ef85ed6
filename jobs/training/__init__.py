"""Weights of one's own: AlexNet trained on labelled images, and quantized with proof that it still sees the same."""
