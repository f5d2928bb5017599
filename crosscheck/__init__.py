"""Whether what relayout writes holds up elsewhere: other catalogs, stores and masters, read by foreign engines."""
