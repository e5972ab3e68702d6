"""The same measurement with celery, on a redis of its own: usage: celery_rival.py FOLDER COUNT

Two worker processes, as the machine has two processors; no results are stored. Redis writes its log to the disk each
second (its default for `appendonly`), on one server, so it may lose what JetStream on three servers does not.
"""

import os
import signal
import socket
import subprocess
import sys
import time

from celery import Celery
from redis import Redis

if __name__ == "__main__":
    # The worker imports this file, too.
    os.environ["RIVAL_FOLDER"] = sys.argv[1]
path = os.path.join(os.environ["RIVAL_FOLDER"], "redis.sock")
app = Celery("celery_rival", broker=f"redis+socket://{path}")
app.conf.update(task_ignore_result=True, task_acks_late=True, worker_prefetch_multiplier=32)
redis = Redis(unix_socket_path=path)


@app.task
def item(number, submitted):
    redis.rpush("delays", time.monotonic_ns() - submitted)


def submit(number):
    item.delay(number, time.monotonic_ns())


def wait(items):
    """Until as many have run; returns their delays."""
    while redis.llen("delays") < items:
        time.sleep(0.005)
    delays = sorted(int(delay) for delay in redis.lrange("delays", 0, -1))
    redis.delete("delays")
    return delays


def measure(count):
    worker = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "celery", "-A", "celery_rival", "--workdir",
              os.path.dirname(os.path.abspath(__file__)), "worker", "--concurrency", "2", "--loglevel", "ERROR",
              "--without-gossip", "--without-mingle", "--without-heartbeat"]
    # Submitted without a worker, then run.
    began = time.monotonic()
    for number in range(count):
        submit(number)
    print("submit", int(count / (time.monotonic() - began)))
    process = subprocess.Popen(worker, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while redis.llen("delays") == 0:
            time.sleep(0.001)
        began, first = time.monotonic(), redis.llen("delays")
        wait(count)
        print("run", int((count - first) / (time.monotonic() - began)))
        began = time.monotonic()
        for number in range(count):
            submit(number)
        wait(count)
        both = count / (time.monotonic() - began)
        print("both", int(both))
        calm = min(count, int(both / 2 * 10))
        began = time.monotonic()
        for number in range(calm):
            time.sleep(max(0, began + number * 2 / both - time.monotonic()))
            submit(number)
        delays = wait(calm)
        for name, share in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)]:
            print(name, delays[int((len(delays) - 1) * share)] // 1000)
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    server = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "redis-server", "--port", "0", "--unixsocket", path,
                               "--appendonly", "yes", "--save", "", "--dir", sys.argv[1]], stdout=subprocess.DEVNULL)
    try:
        while True:
            try:
                redis.ping()
                break
            except Exception:
                time.sleep(0.05)
        measure(int(sys.argv[2]))
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()
