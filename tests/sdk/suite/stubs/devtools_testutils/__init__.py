"""Stands in for the one package of the SDK's own repository that its tests import.

It is not published. The tests need two names of it, and against an emulator
neither does anything.
"""
