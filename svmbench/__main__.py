"""``python -m svmbench``: the command ``svmbench`` of the Python that is called."""

from svmbench.cli import main

# A process that multiprocessing starts imports this module again, under another name.
if __name__ == "__main__":
    main()
