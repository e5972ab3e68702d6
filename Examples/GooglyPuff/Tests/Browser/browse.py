"""A person's visit to googlypuff, in a real browser: usage: browse.py PROGRAM [--shots DIRECTORY]"""

import io
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback

from PIL import Image
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from mischief import Mischief

samples = os.path.join(os.path.dirname(__file__), "../../Sources/GooglyPuffKit/Page/samples")
# Where the eyes are, as a person sees them.
astronaut, hopper = [(202, 100), (246, 103)], [(224, 184), (306, 182)]


class Visit:
    """The program, a browser, and what a person does with it."""

    def __init__(self, program, shots):
        self.shots = shots
        self.server = Mischief(os.path.join(samples, "astronaut.jpg"))
        self.folder = tempfile.TemporaryDirectory()
        self.photos = tempfile.TemporaryDirectory()
        self.program = subprocess.Popen(
            [program, "--port", "0"], stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": self.photos.name})
        self.address = self.program.stdout.readline().split()[-1]
        options = webdriver.ChromeOptions()
        # A mouse: without a window there is none.
        mouse = "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4"
        for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", mouse]:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        # The tests look at the drawn eyes, which moving ones would cover.
        self.emulate("prefers-reduced-motion", "reduce")
        self.browser.set_window_size(1200, 900)

    def close(self):
        self.browser.quit()
        self.program.kill()
        self.program.wait()
        self.server.stop()
        self.folder.cleanup()
        self.photos.cleanup()

    def emulate(self, feature, value):
        features = {"features": [{"name": feature, "value": value}]}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", features)

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def until(self, what, condition):
        # Long, because only a failing test waits to the end.
        # A condition may meet an element that the page has just removed.
        return WebDriverWait(self.browser, 120, 0.05, [StaleElementReferenceException]).until(
            lambda _: condition(), what)

    def shot(self, name):
        picture = Image.open(io.BytesIO(self.browser.get_screenshot_as_png())).convert("RGB")
        if self.shots:
            picture.save(os.path.join(self.shots, name + ".png"))
        return picture

    def file(self, name, content):
        path = os.path.join(self.folder.name, name)
        if isinstance(content, bytes):
            with open(path, "wb") as file:
                file.write(content)
        else:
            content.save(path, **({"quality": 92} if name.endswith("jpg") else {}))
        return path

    def upload(self, *paths):
        self.one("#files").send_keys("\n".join(paths))

    def download(self, *urls):
        self.one("#add").click()
        field = self.one("#urls")
        self.until("the predefined list", lambda: field.get_attribute("value"))
        field.clear()
        field.send_keys("\n".join(urls))
        self.one("#fetch").click()

    def notice(self):
        """The text of the only notice, which is then closed."""
        self.until("a notice", lambda: self.all("#notices article"))
        notices = self.all("#notices article")
        assert len(notices) == 1, f"{len(notices)} notices"
        # Nothing is displayed to the driver before the notice has come to rest.
        text = self.until("its text", lambda: notices[0].text.removesuffix("×").strip())
        notices[0].find_element(By.CSS_SELECTOR, "button").click()
        return text

    def tiles(self):
        return [tile.get_attribute("class") for tile in self.all("#photos li")]

    def remove_all(self):
        self.browser.execute_script("for (const button of document.querySelectorAll('#photos .drop')) button.click()")
        self.until("an empty gallery", lambda: not self.all("#photos li"))

    def open(self, index):
        """Opens a photo, waits for the verdict, and gives the picture that is on the screen, in its own pixels."""
        self.all("#photos .open")[index].click()
        self.until("the photo at once", lambda: self.one("#viewer img").get_property("naturalWidth") > 0)
        self.until("a verdict", lambda: "Looking" not in self.one("#verdict").text)
        # The larger of the two is what the person sees.
        image = self.one("#viewer img")
        self.until("the picture", lambda: image.get_property("complete"))
        box, size = image.rect, (image.get_property("naturalWidth"), image.get_property("naturalHeight"))
        part = self.shot(f"open-{index}").crop(
            (round(box["x"]), round(box["y"]), round(box["x"] + box["width"]), round(box["y"] + box["height"])))
        verdict = self.one("#verdict").text
        self.one("#viewer .close").click()
        return part.resize(size), verdict


def eye_at(picture, place, reach):
    """Whether a googly eye is at that place: much pure white and much black, which no face has."""
    around = [picture.getpixel((place[0] + x, place[1] + y)) for x in range(-reach, reach + 1)
              for y in range(-reach, reach + 1) if x * x + y * y <= reach * reach]
    white = sum(min(pixel) > 235 for pixel in around) / len(around)
    black = sum(max(pixel) < 60 for pixel in around) / len(around)
    return white > 0.25 and black > 0.15


# The tests, in the order of a visit.

def the_prompt_comes_after_two_seconds(visit):
    visit.browser.get(visit.address)
    assert not visit.one("#prompt").is_displayed()
    assert visit.one("#empty").is_displayed()
    start = time.monotonic()
    visit.until("the prompt", lambda: visit.one("#prompt").is_displayed())
    # The page had begun to listen before `start`; loading takes far less than the rest.
    assert time.monotonic() - start > 0.5
    visit.shot("prompt")
    visit.one("#invite").click()
    assert visit.one("#chooser").is_displayed()
    visit.until("the predefined list", lambda: "/samples/astronaut.jpg" in visit.one("#urls").get_attribute("value"))
    visit.shot("chooser")
    visit.one("#chooser .close").click()


def photos_of_ones_own_appear_and_the_prompt_goes(visit):
    photos = [Image.open(os.path.join(samples, name)) for name in ("astronaut.jpg", "grace-hopper.jpg", "chelsea.jpg")]
    # PNG and WebP too; a name is text, not a part of the page.
    visit.upload(visit.file("one.png", photos[0]), visit.file("two.webp", photos[1]), visit.file("<i>cat.jpg", photos[2]))
    assert "3 photos have arrived." == visit.notice()
    assert visit.tiles() == ["ready"] * 3
    assert not visit.one("#prompt").is_displayed() and not visit.one("#empty").is_displayed()
    names = [name.get_attribute("textContent") for name in visit.all("#photos .name")]
    assert names == ["one.png", "two.webp", "<i>cat.jpg"], names
    visit.shot("gallery")


def what_is_sent_shows_its_progress(visit):
    # The bars may be seen for a few milliseconds only: what they are set to is written down.
    visit.browser.execute_script("""
        window.seen = [];
        const value = Object.getOwnPropertyDescriptor(HTMLProgressElement.prototype, "value");
        Object.defineProperty(HTMLProgressElement.prototype, "value", {
            get() { return value.get.call(this); },
            set(now) { seen.push([this.parentElement.tagName, now]); value.set.call(this, now); },
        });""")
    photo = open(os.path.join(samples, "grace-hopper.jpg"), "rb").read()
    visit.upload(*[visit.file(f"more{number}.jpg", photo + bytes(1 << 20)) for number in range(3)])
    assert visit.notice() == "3 photos have arrived."
    visit.until("the end of it", lambda: not visit.one("#progress").is_displayed())
    seen = visit.browser.execute_script("return seen")
    assert [value for element, value in seen if element == "P"] == [0, 1 / 3, 2 / 3, 1], seen
    assert sum(element == "LI" and value == 1 for element, value in seen) == 3, seen
    for button in visit.all("#photos .drop")[3:]:
        visit.browser.execute_script("arguments[0].click()", button)
    visit.until("three photos", lambda: visit.tiles() == ["ready"] * 3)


def eyes_are_where_the_faces_are(visit):
    for index, places, reach in [(0, astronaut, 11), (1, hopper, 28)]:
        picture, verdict = visit.open(index)
        assert verdict == "One face, much improved.", verdict
        for place in places:
            assert eye_at(picture, place, reach), f"no eye near {place}"
        # And nowhere else: the face's own chin, a corner.
        for place in [(places[0][0], places[0][1] + 4 * reach), (40, 40)]:
            assert not eye_at(picture, place, reach), f"an eye at {place}"
    # The gallery shows them, too; a photo that has not been opened is as it was.
    shown = [image.get_attribute("src").rpartition("/")[2] for image in visit.all("#photos img")]
    assert shown == ["googly-thumbnail", "googly-thumbnail", "thumbnail"], shown


def the_cross_is_there_on_hover(visit):
    def opacity():
        return float(visit.all("#photos .drop")[2].value_of_css_property("opacity"))

    assert visit.browser.execute_script("return matchMedia('(hover: hover)').matches")
    visit.until("no cross", lambda: opacity() == 0)
    webdriver.ActionChains(visit.browser).move_to_element(visit.all("#photos li")[2]).perform()
    visit.until("the cross", lambda: opacity() == 1)
    webdriver.ActionChains(visit.browser).move_to_element(visit.one("h1")).perform()


def a_photo_without_faces_stays_as_it_is(visit):
    _, verdict = visit.open(2)
    assert verdict == "No face here. Nothing to googlify.", verdict


def every_face_of_a_group_gets_eyes(visit):
    group = Image.new("RGB", (1024, 1112), "gray")
    parts = [("astronaut.jpg", (0, 0), astronaut, 11), ("astronaut.jpg", (512, 0), astronaut, 11),
             ("grace-hopper.jpg", (0, 512), hopper, 28), ("grace-hopper.jpg", (512, 512), hopper, 28)]
    for name, corner, _, _ in parts:
        group.paste(Image.open(os.path.join(samples, name)), corner)
    visit.upload(visit.file("group.jpg", group))
    assert visit.notice() == "One photo has arrived."
    picture, verdict = visit.open(3)
    assert verdict == "4 faces, much improved.", verdict
    for _, corner, places, reach in parts:
        for place in places:
            assert eye_at(picture, (place[0] + corner[0], place[1] + corner[1]), reach), f"no eye in {corner}"


def the_eyes_follow_the_pointer(visit):
    visit.emulate("prefers-reduced-motion", "no-preference")
    visit.browser.refresh()
    visit.until("the photos", lambda: len(visit.all("#photos li.ready")) == 4)
    visit.all("#photos .open")[0].click()
    visit.until("living eyes", lambda: len(visit.all("#viewer .eye")) == 2)
    pupil = "return document.querySelector('#viewer .eye i').style.transform"
    before = visit.browser.execute_script(pupil)
    webdriver.ActionChains(visit.browser).move_by_offset(5, 5).perform()
    visit.until("a glance", lambda: visit.browser.execute_script(pupil) != before)
    visit.one("#viewer .close").click()
    visit.emulate("prefers-reduced-motion", "reduce")
    visit.browser.refresh()
    visit.until("the photos", lambda: len(visit.all("#photos li.ready")) == 4)


def removed_photos_go_and_the_prompt_returns(visit):
    visit.remove_all()
    visit.until("the prompt", lambda: visit.one("#prompt").is_displayed())


def le_internet_in_all_its_moods(visit):
    base = visit.server.address
    visit.download(*[f"{base}/{path}" for path in ("photo", "slow", "redirect", "404", "break", "rubbish", "text")])
    text = visit.notice()
    assert text.startswith("3 photos have arrived. 4 photos could not be added:"), text
    assert "404: the server answered 404" in text, text
    assert "text: not a picture" in text, text
    for name in ("break", "rubbish"):
        assert f"\n{name}: " in text, text
    assert visit.tiles() == ["ready"] * 3, visit.tiles()
    visit.remove_all()


def bad_files_are_named_with_the_reason(visit):
    photo = open(os.path.join(samples, "astronaut.jpg"), "rb").read()
    frames = [Image.new("RGB", (40, 40), color) for color in ("red", "blue")]
    animated, gif, bomb = io.BytesIO(), io.BytesIO(), io.BytesIO()
    frames[0].save(animated, "PNG", save_all=True, append_images=frames[1:])
    frames[0].save(gif, "GIF", save_all=True, append_images=frames[1:])
    Image.new("1", (30_000, 30_000)).save(bomb, "PNG")
    visit.upload(
        visit.file("good.jpg", photo), visit.file("broken.jpg", photo[: len(photo) // 2]), visit.file("bomb.png", bomb.getvalue()),
        visit.file("animated.png", animated.getvalue()), visit.file("moving.jpg", gif.getvalue()),
        visit.file("text.jpg", b"hello"), visit.file("empty.jpg", b""), visit.file("large.jpg", b"\xff\xd8\xff" + bytes(30 << 20)))
    text = visit.notice()
    assert text.startswith("One photo has arrived. 7 photos could not be added:"), text
    for line in ["broken.jpg: the picture is damaged", "bomb.png: 30000 × 30000 pixels are too many", "animated.png: animated",
                 "moving.jpg: animated", "text.jpg: not a picture", "empty.jpg: not a picture", "large.jpg: the file is larger"]:
        assert line in text, f"{line!r} is not in {text!r}"
    visit.shot("notice")
    visit.remove_all()


def a_hundred_at_once_leave_the_main_queue_free(visit):
    photo = open(os.path.join(samples, "chelsea.jpg"), "rb").read()
    visit.upload(*[visit.file(f"{number:03}.jpg", photo) for number in range(100)])
    assert visit.notice() == "100 photos have arrived."
    assert visit.tiles() == ["ready"] * 100
    visit.until("the figure", lambda: "main queue" in visit.one("#watch").text)
    print("   ", visit.one("#watch").text)
    assert not visit.one("#progress").is_displayed()


def the_browser_had_nothing_to_complain_about(visit):
    # Requests that are refused are in the log, and so they should be: the one file that is too large.
    lines = [line["message"] for line in visit.browser.get_log("browser") if line["level"] == "SEVERE"]
    assert all("/photos/" in line for line in lines), lines


def a_signal_ends_the_program(visit):
    # The page is open. This is the optimized program, unlike that of the unit tests.
    visit.program.send_signal(signal.SIGTERM)
    assert visit.program.wait(60) == 0
    assert not os.listdir(visit.photos.name)


def main():
    shots = sys.argv[3] if sys.argv[2:3] == ["--shots"] else None
    visit = Visit(sys.argv[1], shots)
    passed = failed = 0
    try:
        for test in [the_prompt_comes_after_two_seconds, photos_of_ones_own_appear_and_the_prompt_goes,
                     what_is_sent_shows_its_progress, the_cross_is_there_on_hover, eyes_are_where_the_faces_are,
                     a_photo_without_faces_stays_as_it_is, every_face_of_a_group_gets_eyes,
                     the_eyes_follow_the_pointer, removed_photos_go_and_the_prompt_returns, le_internet_in_all_its_moods,
                     bad_files_are_named_with_the_reason, a_hundred_at_once_leave_the_main_queue_free,
                     the_browser_had_nothing_to_complain_about, a_signal_ends_the_program]:
            start = time.monotonic()
            try:
                test(visit)
                passed += 1
                print(f"passed {test.__name__} ({time.monotonic() - start:.1f} s)", flush=True)
            except Exception:
                failed += 1
                print(f"! FAILED {test.__name__}", flush=True)
                traceback.print_exc(file=sys.stdout)
                visit.shot(f"failed-{test.__name__}")
    finally:
        visit.close()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
