"""AlexNet on the members of a training run: the program that they run, and what this machine does before and after."""
