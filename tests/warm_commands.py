"""A program ``svmbench`` whose calls are forks of one process, which has imported the libraries.

Each command would else import for more than a second what the command before it has imported. The
package itself is imported by each call: what it knows depends on its plug-ins.
"""

from __future__ import annotations

import ast
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent
#: What most commands import.
LIBRARIES = ("numba", "sklearn.model_selection", "matplotlib.figure", "pydantic", "rich.console")
#: Hands its words, folder, environment and standard streams to the process; ends with its code.
PROGRAM = """\
#!{python} -SE
import os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
    line.connect({address!r})
    told = repr((sys.argv[1:], os.getcwd(), dict(os.environ))).encode()
    socket.send_fds(line, [told], [0, 1, 2])
    sys.exit(int(line.recv(16)))
"""


@contextmanager
def warm_svmbench(place: Path, address: str) -> Iterator[None]:
    """Have a program at a place; its process listens at an address, a path of a socket."""
    place.write_text(PROGRAM.format(python=sys.executable, address=address))
    place.chmod(0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(address)
        door.listen()
        words = f"import warm_commands; warm_commands.answer({door.fileno()})"
        process = subprocess.Popen(
            [sys.executable, "-c", words],
            env=os.environ | {"PYTHONPATH": str(HERE)},
            pass_fds=[door.fileno()],
            # Pipes: Python would ask a file for its position, which a command's output may lack.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    try:
        yield
    finally:
        process.kill()
        process.communicate()


def answer(descriptor: int) -> None:
    """Run the commands that are asked for, one at a time, each in a fork of this process."""
    from svmbench.base import loaded_libraries

    loaded_libraries.load_with_one_thread()
    for name in LIBRARIES:
        import_module(name)
    del sys.path[sys.path.index(str(HERE))]
    with socket.socket(fileno=descriptor) as door:
        while True:
            line, _ = door.accept()
            told, streams, *_ = socket.recv_fds(line, 2**18, 3)
            pid = os.fork()
            if pid == 0:
                break
            for stream in streams:
                os.close(stream)
            _, status = os.waitpid(pid, 0)
            line.send(str(os.waitstatus_to_exitcode(status)).encode())
            line.close()
    line.close()
    words, folder, environment = ast.literal_eval(told.decode())
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[1:1] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    sys.argv = ["svmbench", *words]
    from svmbench.cli import main

    main()
