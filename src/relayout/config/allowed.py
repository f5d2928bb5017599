"""Which settings of Spark, catalogs and Kafka a configuration may carry.

A configuration may be shared, so nothing in it may load code: no jars, no JVM options, no class names. Spark's settings
are taken from an allow list of families, minus every key with a word in it that stands for code.
"""

from __future__ import annotations

import re

_SPARK_FAMILIES = tuple(
    "spark." + family
    for family in re.findall(
        r"\S+",
        """
        app.name authenticate blockManager. broadcast. buffer. checkpoint. cleaner. cores. default. deploy. driver.
        dynamicAllocation. eventLog. excludeOnFailure. executor. files. hadoop.fs.s3a. hadoop.mapreduce. hadoop.parquet.
        io. kryoserializer. local.dir locality. log. logConf master. memory. network. port. python. rdd. reducer.
        resultGetter. rpc. scheduler. shuffle. speculation sql. stage. storage. streaming. task. taskMetrics. ui.
        worker.
        """,
    )
)
_CODE_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        class classes deserializer extensions factory filters hook hooks impl interceptor jar jars listener
        listeners manager module packages plugin plugins policy provider providers registrator repositories script serde
        serializer
        """,
    )
)
_CODE = re.compile("javaoptions|classpath|librarypath|pyfiles")
_OURS = {
    "spark.driver.memory": "set `spark.driver_memory`",
    "spark.master": "set `spark.master`",
    "spark.sql.defaultCatalog": "relayout sets it from `catalog.name`",
}
_OWN_SESSION = "a configuration cannot load code; pass a session of your own to relayout.open(..., spark=session)"


def _words(key: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", key)]


def _names_code(key: str) -> bool:
    squeezed = re.sub(r"[^a-z]", "", key.lower())
    return bool(_CODE.search(squeezed)) or any(word in _CODE_WORDS for word in _words(key))


def refused_spark_setting(key: str, value: str) -> tuple[str, str] | None:
    """What is wrong with a Spark setting and what to do, or None when it only tunes."""
    if key in _OURS:
        return "is set elsewhere", _OURS[key]
    if not key.startswith("spark."):
        return "is not a Spark setting", "write the whole key, such as spark.sql.shuffle.partitions"
    if key.startswith("spark.sql.catalog."):
        return "catalogs are declared in `catalog`", "set `catalog.properties`"
    if _names_code(key):
        return "loads code or JVM options", _OWN_SESSION
    if not key.startswith(_SPARK_FAMILIES):
        return "is not on the list of settings that only tune", _OWN_SESSION
    if key.endswith("codec") and "." in value:
        return "names a class", "use a short name such as zstd"
    return None


def refused_catalog_property(key: str, _value: str) -> tuple[str, str] | None:
    """The same for a catalog's properties."""
    if _names_code(key):
        return "names code to load", "remove it; a configuration cannot load code"
    if key in ("type", "uri", "warehouse"):
        return "is set elsewhere", f"set `{'warehouse' if key == 'warehouse' else 'catalog.' + key}`"
    return None


_LOGIN = re.compile(r"\s*(?:[A-Za-z0-9_]+\.)*(?:Plain|Scram|OAuthBearer)LoginModule\s")


def refused_kafka_option(key: str, value: str) -> tuple[str, str] | None:
    """The same for a stream's Kafka options."""
    if key.endswith("sasl.jaas.config"):
        if _LOGIN.match(value) and value.count("LoginModule") == 1:
            return None
        return "names a login module that is not known here", "use the Plain, Scram or OAuthBearer login module"
    if _names_code(key):
        return "names code to load", "remove it; a configuration cannot load code"
    return None
