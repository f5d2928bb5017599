"""Another process of relayout, kept warm: every order runs in a forked child, so that a death costs no JVM's start.

Each line on stdin is an order: `{"arguments": ["apply"], "environment": {}, "output": "file"}`. Its first answer is
`{"pid": 1}`, its last one `{"exit": 0}`, negative for a signal. When a child was killed, its jobs are cancelled and
waited for, as if its JVM had died with it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

import relayout
from relayout import cli


def main() -> None:
    """Take orders until stdin ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    spark = relayout.open(json.loads(sys.argv[1])).spark
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            obey(order, spark)
        print(json.dumps({"pid": pid}), file=answers)
        status = os.waitpid(pid, 0)[1]
        wait_for_silence(spark)
        print(json.dumps({"exit": os.waitstatus_to_exitcode(status)}), file=answers)


def obey(order: dict[str, Any], spark: Any) -> None:
    """Run the command line in this child and end with its exit code."""
    os.setsid()
    os.environ.update(order["environment"])
    output = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.argv = ["relayout", *order["arguments"]]
    code = 99
    try:
        leave_connections_to_parent(spark)
        code = cli.main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def leave_connections_to_parent(spark: Any) -> None:
    """A socket to the JVM can serve one of the two only; the child opens its own."""
    client = spark.sparkContext._gateway._gateway_client
    client.of_parent = (client.deque.copy(), client.thread_connection)
    client.deque.clear()
    client.thread_connection = threading.local()


def wait_for_silence(spark: Any) -> None:
    spark.sparkContext.cancelAllJobs()
    tracker = spark.sparkContext.statusTracker()
    while tracker.getActiveStageIds():
        time.sleep(0.02)


if __name__ == "__main__":
    main()
