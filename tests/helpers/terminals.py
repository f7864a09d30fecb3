"""What a process prints on a terminal."""

import os


def read_to_end(leader: int) -> bytes:
    """All that comes from the other end of a pseudo-terminal until it is closed; this end is closed then too."""
    seen = b""
    try:
        while part := os.read(leader, 1 << 16):
            seen += part
    except OSError:  # so Linux says that the other end is closed
        pass
    os.close(leader)
    return seen
