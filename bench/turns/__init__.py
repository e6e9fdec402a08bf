"""The number of a pulse's turns in a second, and the cost of pulses."""
