"""`python -m docmem`."""

from docmem.cli import run

if __name__ == "__main__":
    run()
