"""Sessions: the Java to run on, the jars to run with, the catalog as Spark sees it."""
