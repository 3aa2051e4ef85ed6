"""What a job did, as numbers, as a page, and as a time line."""
