"""Wrong uses, and the page of errors that is made from them."""
