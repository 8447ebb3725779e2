"""The commands of ``gridlstm``; ``options`` has what can be asked of them."""
