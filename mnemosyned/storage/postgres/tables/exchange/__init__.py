"""Records of exports, from rows and to rows."""
