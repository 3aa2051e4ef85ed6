"""Jobs that classify images: blocks and capability in, a plan out, one worker on each node, rows in Parquet."""
