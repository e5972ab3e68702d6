"""A visit to the farm without a person: usage: check.py [--shots DIRECTORY]

All photos must get their eyes, each once, while workers and servers are killed; and of a farm that has ended, also by
kill -9, nothing must be left.
"""

import json
import os
import signal
import subprocess
import sys
import time
import traceback
import urllib.request

PHOTOS = 60
# Only a failing test waits to the end.
PATIENCE = 240


class Farm:
    def __init__(self):
        self.script = subprocess.Popen(
            ["Cluster/Scripts/demo", "--port", "0"], stdout=subprocess.PIPE, text=True, start_new_session=True)
        words = self.script.stdout.readline().split()
        self.address, self.folder = words[4].rstrip("/;"), words[-1]

    def get(self, path):
        with urllib.request.urlopen(self.address + path) as answer:
            return answer.read()

    def state(self):
        return json.loads(self.get("/farm"))

    def submit(self, count):
        samples = json.loads(self.get("/internet"))
        urls = [f"{samples[n % len(samples)]}?{n}" for n in range(count)]
        body = json.dumps({"urls": urls}).encode()
        with urllib.request.urlopen(urllib.request.Request(self.address + "/downloads", body, method="POST")) as answer:
            return json.loads(answer.read())

    def photos(self):
        """The first event of the page's stream has all photos."""
        with urllib.request.urlopen(self.address + "/events?page=check") as stream:
            for line in stream:
                text = line.decode()
                if text.startswith("data: ["):
                    return {photo["id"]: photo for photo in json.loads(text[6:])}

    def until(self, what, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            assert self.script.poll() is None, "the script has ended"
            assert time.monotonic() < end, f"waited too long: {what}; {self.state()}"
            time.sleep(0.05)

    def processes(self):
        """All processes that have the farm's folder for their files, or as an argument."""
        found = []
        for process in filter(str.isdigit, os.listdir("/proc")):
            for name in ["environ", "cmdline"]:
                try:
                    with open(f"/proc/{process}/{name}", "rb") as file:
                        if self.folder.encode() in file.read():
                            found.append(process)
                except OSError:
                    pass
        return found

    def end(self, number):
        """Sends the signal to the script alone, and checks that nothing is left."""
        assert self.processes(), "no process of the farm is found"
        self.script.send_signal(number)
        self.script.stdout.close()
        self.script.wait()
        end = time.monotonic() + 30
        while self.processes() or os.path.exists(self.folder):
            assert time.monotonic() < end, f"left: {self.processes()}, {self.folder}"
            time.sleep(0.05)


def shot(farm, folder):
    """The page, while a worker is dead and another one works."""
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
        options = webdriver.ChromeOptions()
        for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]:
            options.add_argument(argument)
        browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    except Exception as reason:
        print(f"no picture of the page, which needs chromium-driver and python3-selenium: {reason}")
        return
    try:
        browser.set_window_size(1200, 900)
        browser.get(farm.address)
        yield
        farm.until("a dead worker", lambda: any(not worker["isAlive"] for worker in farm.state()["workers"].values()))
        time.sleep(0.4)
        browser.save_screenshot(os.path.join(folder, "farm.png"))
    finally:
        browser.quit()


def each_photo_comes_out_once(shots):
    farm = Farm()
    try:
        picture = shot(farm, shots) if shots else iter(())
        next(picture, None)
        ids = farm.submit(PHOTOS)

        def finished():
            return sum(photo["isFinished"] for photo in farm.state()["photos"].values())

        farm.until("a third of the photos", lambda: finished() > PHOTOS / 3)
        next(picture, None)
        farm.until("all photos", lambda: finished() == PHOTOS)
        # Reports of starts may come after the results.
        farm.until("reports", lambda: all(photo["starts"] for photo in farm.state()["photos"].values()))
        farm.until("kills", lambda: farm.state()["kills"] >= 6)
        state, photos = farm.state(), farm.photos()
        assert sorted(photos) == sorted(ids), "photos are missing"
        assert sum(worker["finished"] for worker in state["workers"].values()) == PHOTOS, state["workers"]
        eyes = {}
        for photo in photos.values():
            eyes.setdefault(photo["name"].split("?")[0], set()).add(json.dumps(photo.get("eyes")))
            assert farm.get(f"/photos/{photo['id']}/googly")[:2] == b"\xff\xd8", photo
        assert all(len(kinds) == 1 for kinds in eyes.values()), eyes
        assert len(json.loads(eyes["astronaut.jpg"].pop())) == 2
        starts = sum(photo["starts"] for photo in state["photos"].values())
        shares = ", ".join(f"{worker['finished']}" for _, worker in sorted(state["workers"].items()))
        print(f"{PHOTOS} photos came out once each, from {starts} starts, under {state['kills']} kills; workers: {shares}")
    finally:
        farm.end(signal.SIGINT)


def a_killed_script_leaves_nothing(_):
    farm = Farm()
    farm.submit(10)
    farm.end(signal.SIGKILL)


shots = sys.argv[sys.argv.index("--shots") + 1] if "--shots" in sys.argv else None
passed = failed = 0
for test in [each_photo_comes_out_once, a_killed_script_leaves_nothing]:
    try:
        test(shots)
        passed += 1
    except Exception:
        traceback.print_exc()
        print(f"! {test.__name__} failed")
        failed += 1
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
