"""When will what waits in YARN's queues begin? Arithmetic alone: nothing here asks anybody anything.

`scene` is what is known of a cluster at one moment, `stage` the same in numbers, `run_times` what is known of how long
things run, `replay` plays the queues forward once, and `estimate` makes an interval of many such replays.
"""
