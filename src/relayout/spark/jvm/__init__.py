"""The only package that knows py4j: the gateway, and the parts of Iceberg's Java API that Spark SQL does not reach."""
