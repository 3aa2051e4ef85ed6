"""What waits in YARN's queues, for what, and until when: asked of the ResourceManager alone."""
