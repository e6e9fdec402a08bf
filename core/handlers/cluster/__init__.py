"""Operations on the cluster itself: leadership, members and CLONE. May import the same rooms as `handlers`."""
