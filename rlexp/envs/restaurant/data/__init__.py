"""The shipped restaurant domain: synthetic venues in PyDial's formats (:mod:`rlexp.studies.restaurant_data`)."""
