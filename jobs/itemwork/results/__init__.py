"""What a job that divides items leaves: a row for each item in Parquet, proved to be complete, beside its report."""
