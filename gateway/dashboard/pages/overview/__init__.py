"""The first page: whether all is well, what needs attention, figures of now and of the last days, and the nodes.

`attention` finds problems, a few queues at a time; `verdict` says in one sentence whether all is well; `nodes`
draws the cards of the nodes; `page` is the page.
"""
