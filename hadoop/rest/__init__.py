"""Everything that reads the web pages of Hadoop's daemons, without a JVM.

`addresses` finds the daemons in the site files, `pages` opens their pages, and each other module reads one daemon.
"""
