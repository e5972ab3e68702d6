"""The same measurement with celery, on a redis of its own: usage: celery_rival.py FOLDER COUNT

Two worker processes, as the machine has two processors, and as many threads that submit; no results are stored. A handler
writes its delay to a file, which takes a microsecond or two. Redis writes its log to the disk each
second (its default for `appendonly`), on one server, so it may lose what JetStream on three servers does not.
"""

import concurrent.futures
import os
import signal
import struct
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
record = struct.Struct("q")
log = os.path.join(os.environ["RIVAL_FOLDER"], "delays")
delays = os.open(log, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
submitters = concurrent.futures.ThreadPoolExecutor(2)


@app.task
def item(number, submitted):
    os.write(delays, record.pack(time.monotonic_ns() - submitted))


def submit(number):
    item.delay(number, time.monotonic_ns())


def submit_all(count):
    for _ in submitters.map(submit, range(count)):
        pass


def finished():
    return os.stat(log).st_size // record.size


def wait(items):
    """Until as many have run; returns their delays."""
    while finished() < items:
        time.sleep(0.005)
    with open(log, "rb") as file:
        found = sorted(delay for delay, in record.iter_unpack(file.read()))
    os.truncate(log, 0)
    return found


def measure(count):
    worker = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "celery", "-A", "celery_rival", "--workdir",
              os.path.dirname(os.path.abspath(__file__)), "worker", "--concurrency", "2", "--loglevel", "ERROR",
              "--without-gossip", "--without-mingle", "--without-heartbeat"]
    # Submitted without a worker, then run.
    began = time.monotonic()
    submit_all(count)
    print("submit", int(count / (time.monotonic() - began)))
    process = subprocess.Popen(worker, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while finished() == 0:
            if process.poll() is not None:
                sys.exit("celery's worker has ended")
            time.sleep(0.001)
        began, first = time.monotonic(), finished()
        wait(count)
        print("run", int((count - first) / (time.monotonic() - began)))
        began = time.monotonic()
        submit_all(count)
        wait(count)
        both = count / (time.monotonic() - began)
        print("both", int(both))
        calm = min(count, int(both / 2 * 10))
        began = time.monotonic()
        for number in range(calm):
            time.sleep(max(0, began + number * 2 / both - time.monotonic()))
            submit(number)
        calm_delays = wait(calm)
        for name, share in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)]:
            print(name, calm_delays[int((len(calm_delays) - 1) * share)] // 1000)
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
