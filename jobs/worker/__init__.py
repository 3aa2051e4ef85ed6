"""What runs in each container: pictures in, classes out."""
