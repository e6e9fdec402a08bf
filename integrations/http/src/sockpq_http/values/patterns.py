"""Patterns of texts in requests, and the messages that refuse texts of another form."""

from __future__ import annotations

NAME = r"^[A-Za-z0-9_.+;$()][A-Za-z0-9_.+;$():@-]{0,254}$"
KEY = r"^[A-Za-z0-9_.:-]{1,128}$"
WORD = r"^[A-Za-z0-9_.:-]{1,64}$"
ROUTING = r"^[A-Za-z0-9_.:@#*-]{1,255}$"
ID = r"^([a-z0-9_-]{1,32}[.])?[0-9]{1,19}$"
SEQ = r"^[0-9]{1,19}$"
EVENT = r"^[0-9]{1,18}$"

WORDS = {           # as the client library says it
    NAME: "a name is 1 to 255 of A-Z a-z 0-9 _ . + ; $ ( ) : @ -, not beginning with : @ -",
    KEY: "a key is 1 to 128 of A-Z a-z 0-9 _ . : -",
    WORD: "a word is 1 to 64 of A-Z a-z 0-9 _ . : -",
    ROUTING: "a pattern of routing keys is 1 to 255 of A-Z a-z 0-9 _ . : @ -, with * for a word and # "
             "for any number of words",
    ID: "an id is digits, with the name of its cluster and a dot before them where several clusters are used as one",
    SEQ: "a place is 1 to 19 digits",
    EVENT: "the number of an event is 1 to 18 digits",
}
