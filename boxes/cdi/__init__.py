"""Devices of this machine and the files of their drivers, as its CDI files describe them (Container Device Interface).

An operator, or the maker of a driver, writes such a file: so a program gets the driver of the node that it runs on, and
what it brings along itself has none. https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md
"""
