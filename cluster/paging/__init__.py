"""Pages of waiting jobs on the disk of this node: their files, and when jobs go there. After `storage`."""
