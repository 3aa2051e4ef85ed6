"""Faults in the middle of jobs, on a real cluster: does every picture get its row?"""
