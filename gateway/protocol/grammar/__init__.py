"""The grammar of the protocol: one small function per verb, from the words of its line to a command.

Keywords are read in upper case only.
"""
