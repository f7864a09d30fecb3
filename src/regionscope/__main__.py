"""`python -m regionscope` is the command `regionscope`."""

from regionscope.cli import main

if __name__ == "__main__":
    main()
