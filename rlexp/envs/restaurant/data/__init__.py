"""The shipped restaurant domain: invented venues in PyDial's file formats, and the script that makes them."""
