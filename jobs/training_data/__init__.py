"""Data sets in HDFS for training runs: images and Parquet, read where they lie. `nodewise.learning` offers them.

Each has the methods that `learning.member.samples.Samples` knows: batch_of, places_of, reads_ahead and fingerprint.
"""
