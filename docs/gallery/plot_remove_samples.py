"""
A least-squares SVM without some of its samples
===============================================

ALSVM keeps the inverse of its normal matrix, so that samples can be removed or added in closed form
(Le, Nguyen et al. 2015). The updated weights agree with those of training again.
"""

# %%
# Train once, then remove ten samples at a time.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import minmax_scale

import svmbench

data = svmbench.load("breast-cancer")
X, y = minmax_scale(data.X), data.y
model = svmbench.ALSVM(C=1.0).fit(X, y)

removed, differences = [], []
for first in range(0, 200, 10):
    model.remove(X[first : first + 10], y[first : first + 10])
    again = svmbench.ALSVM(C=1.0).fit(X[first + 10 :], y[first + 10 :])
    removed.append(first + 10)
    differences.append(np.abs(model.coef_ - again.coef_).max() / np.abs(again.coef_).max())

# %%
# The largest relative difference of a weight stays near rounding.

plt.figure(figsize=(7, 3.5), layout="constrained")
plt.semilogy(removed, differences, "o-")
plt.xlabel("samples removed")
plt.ylabel("largest relative difference of a weight")
plt.show()
