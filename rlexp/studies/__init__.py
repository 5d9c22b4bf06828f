"""Code that exists for one published figure, one identification or one comparison with an original.

Studies measure and return plain numbers; :mod:`rlexp.reports` prints and draws them. Nothing at run time needs them::

    cliffwalk                         updates until Blind Cliffwalk is solved, by order of replay
    datacenter_fidelity               the data centre's engine and surrogate under reference controllers
    plant_data, plant_identification  the surrogate's constants, from the engine
    restaurant_data                   the synthetic venues of the restaurant environment
    restaurant_fidelity               the restaurant environment beside figures measured with PyDial
"""
