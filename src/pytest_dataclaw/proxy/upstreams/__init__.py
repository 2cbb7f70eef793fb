"""Where a leased request is answered: built-in players now, providers beside them."""
