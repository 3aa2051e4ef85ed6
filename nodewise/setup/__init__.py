"""What an installation without a checkout needs beside its wheel: the workers' environment, and Hadoop's jars."""
