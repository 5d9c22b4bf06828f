"""Parts of networks that algorithms share."""
