"""The difference GNN: what removing genes takes away from the pooled wild type, y ≈ h(F(G) − F(G∖S))."""
