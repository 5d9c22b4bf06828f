"""One thread: on networks this small a second one only waits."""

import torch as th

th.set_num_threads(1)
