"""`python -m tests.mutants` makes mistakes in the code that keeps the promise, one at a time: is each noticed?"""
