"""The routing rule: the one piece of Java, and the jar that is made of it."""
