"""PyTorch is imported first: where MXNet was, PyTorch's own products of matrices end the process.

Both load an OpenBLAS of their own, and the first one answers for functions of the second that differ between the two.
"""

import torch  # noqa: F401
