"""Running a compaction plan: kernels inside one Spark job, and Spark itself for what they cannot read."""
