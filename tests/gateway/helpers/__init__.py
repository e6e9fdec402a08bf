"""What the tests of the gateway stand on: fakes, clients, models. There are no tests here."""
