"""How soon training tasks are done on unevenly busy nodes, by the rule that places them."""
