"""The elastic scheduler: jobs of many activities get workers beyond those wanted."""

from schedulers.elastic.scheduler import ElasticScheduler

__all__ = ["ElasticScheduler"]
