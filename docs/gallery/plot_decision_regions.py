"""
Decision regions of four machines
=================================

A C-SVC, a least-squares SVM, a core vector machine and a Nyström machine on two moons. The four
models minimise different losses, and their regions hardly differ.
"""

# %%
# The data: two moons with noise.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import svmbench

X, y = make_moons(400, noise=0.2, random_state=0)

# %%
# Four machines with the same kernel.

machines = {
    "C-SVC": svmbench.CSVC(C=1.0, gamma=2.0),
    "LS-SVM": svmbench.LSSVM(C=1.0, gamma=2.0),
    "CVM": svmbench.CVM(C=1.0, gamma=2.0),
    "Nyström, 40 vectors": svmbench.Nystrom(C=1.0, gamma=2.0, n_basis=40),
}

# %%
# The regions, with the accuracy on the training samples.

grid_x, grid_y = np.meshgrid(np.linspace(-2, 3, 160), np.linspace(-1.5, 2, 120))
plane = np.column_stack([grid_x.ravel(), grid_y.ravel()])
figure, axes = plt.subplots(2, 2, figsize=(8, 6), sharex=True, sharey=True, layout="constrained")
for axis, (name, machine) in zip(axes.flat, machines.items(), strict=True):
    machine.fit(X, y)
    values = machine.decision_function(plane).reshape(grid_x.shape)
    axis.contourf(grid_x, grid_y, values > 0, levels=[-0.5, 0.5, 1.5], alpha=0.25, cmap="coolwarm")
    axis.contour(grid_x, grid_y, values, levels=[0.0], colors="black", linewidths=1)
    axis.scatter(*X.T, c=y, s=8, cmap="coolwarm")
    axis.set_title(f"{name}: {machine.score(X, y):.1%} accuracy")
plt.show()
