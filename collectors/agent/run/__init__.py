"""How a program is run on a node: started, limited, watched, ended."""
