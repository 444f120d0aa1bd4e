"""The algorithms: NumPy arrays in, NumPy arrays out.

This room knows nothing of data sets, configs or reports, and imports no other room.
"""
