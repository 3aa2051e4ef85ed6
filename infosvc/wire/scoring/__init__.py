"""How YARN's plug-in scores nodes, for who explains its orders or tries others. The standard library only."""
