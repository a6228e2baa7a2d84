"""`python -m trtplug`."""

from trtplug.cli.main import run

if __name__ == "__main__":
    run()
