"""The store: all measurements in one DuckDB file, and the queries that take them out again."""

from wildtype.datasets.store.query import Query
from wildtype.datasets.store.store import Store, StoredStudy, store_path

__all__ = ["Query", "Store", "StoredStudy", "store_path"]
