"""The decision as a document: what will be built, from what, under which key. Touches no device."""
