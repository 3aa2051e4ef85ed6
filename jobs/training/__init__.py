"""Weights of one's own: AlexNet trained on labelled pictures, and quantized with proof that it still sees the same."""
