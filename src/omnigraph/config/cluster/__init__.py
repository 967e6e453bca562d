"""`cluster.yaml`: what a team wants deployed, as somebody wrote it. Opens no graph."""
