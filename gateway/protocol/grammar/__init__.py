"""The grammar of the protocol: for each verb one small function from the words of its line to a command.

Keywords are read in upper case only.
"""
