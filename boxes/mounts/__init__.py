"""Keeps one mount of each squashfs file for all programs of a user on a node, so that they share what it has unpacked.

`python3 -m boxes.mounts` is that mounter; `boxes.mounts.request` asks it. It mounts in a namespace that nothing else is
in, gives whoever asks a copy of the mount, and lets a mount go when nobody has asked for it, or runs with it, for a
while. What ends when is the kernel's to know: a mount is there as long as a namespace or a descriptor has it, and
squashfuse, which holds no mount itself, ends with the last one. So programs go on when the mounter is killed, and
nothing is left when they have ended.
"""
