package dayfly;

/** How a client comes to a server: in gateway mode, or directly to the items. */
record Way(String scheme, boolean isDirect) {}
