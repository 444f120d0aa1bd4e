"""Tables from records: `layout` gives rows and columns, `captions` the sentences beside them."""
