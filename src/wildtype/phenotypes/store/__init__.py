"""The store: all measurements in one DuckDB file, and the queries that take them out again."""

from wildtype.phenotypes.store.query import Query
from wildtype.phenotypes.store.store import Store, StoredStudy, store_path

__all__ = ["Query", "Store", "StoredStudy", "store_path"]
