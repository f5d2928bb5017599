"""Made-up regional figures in the shapes that real downloads have, for `relayout init` and `relayout demo`."""
