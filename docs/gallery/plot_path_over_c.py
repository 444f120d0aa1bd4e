"""
Accuracy and support vectors along C
====================================

The C-SVC for a range of C on the breast-cancer data: training and test accuracy, and the number of
support vectors. The number of support vectors falls as C grows, because fewer samples lie within
the margin.
"""

# %%
# Scaled inputs; 40 % of the rows test.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import minmax_scale

import svmbench

data = svmbench.load("breast-cancer")
X_train, X_test, y_train, y_test = train_test_split(
    minmax_scale(data.X), data.y, test_size=0.4, random_state=0, stratify=data.y
)

# %%
# One fit for each C.

values = np.logspace(-2, 4, 13)
models = [svmbench.CSVC(C=C, gamma=0.5).fit(X_train, y_train) for C in values]

# %%
# Two plots on the same axis of C.

figure, (top, bottom) = plt.subplots(2, 1, figsize=(7, 6), sharex=True, layout="constrained")
top.semilogx(
    values, [model.score(X_train, y_train) for model in models], "o-", label="training rows"
)
top.semilogx(values, [model.score(X_test, y_test) for model in models], "s-", label="test rows")
top.set_ylabel("accuracy")
top.legend()
bottom.semilogx(values, [len(model.support_) for model in models], "o-", color="black")
bottom.set(xlabel="C", ylabel="support vectors")
plt.show()
