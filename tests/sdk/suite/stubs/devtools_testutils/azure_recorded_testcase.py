"""Credentials of the service, which a test against an emulator never asks for."""


def get_credential(**_):
    raise RuntimeError("These tests run with the key of an emulator, not with a credential.")
