"""Operations on the cluster itself: leadership, members and CLONE. May import what handlers may."""
