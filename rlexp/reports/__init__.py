"""Tables and figures from run folders: no torch, no algorithms, no environments."""
