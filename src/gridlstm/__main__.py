"""``python -m gridlstm``, which is also what ``torchrun -m gridlstm`` starts."""

from gridlstm.cli import main

if __name__ == "__main__":
    main()
