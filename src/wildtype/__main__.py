"""`python -m wildtype`: the command line."""

from wildtype.cli.main import main

if __name__ == "__main__":
    main()
