"""The paper's experiment on five machines of one kind, and what came after it, beside Spark and Hadoop itself."""
