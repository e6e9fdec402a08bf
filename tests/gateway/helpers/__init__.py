"""Helpers of the tests of the gateway: fakes, clients, models. There are no tests here."""
