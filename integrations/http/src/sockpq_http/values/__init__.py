"""The values of requests and answers: models, times, ids and bodies, without any HTTP."""
