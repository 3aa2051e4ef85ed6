"""What runs in each container: images in, classes out."""
