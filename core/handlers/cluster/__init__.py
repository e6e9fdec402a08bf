"""Operations on the cluster itself: leadership, members and CLONE. May import whatever handlers may."""
