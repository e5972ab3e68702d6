// Eyes that follow the pointer and wobble: each pupil hangs on a spring and bounces off the rim.

const still = matchMedia("(prefers-reduced-motion: reduce)");
const eyes = new Set();
let pointer = null;
let frame = 0;

addEventListener("pointermove", (event) => {
  pointer = { x: event.clientX, y: event.clientY };
  wake();
});

function wake() {
  if (!frame && eyes.size > 0 && !still.matches) frame = requestAnimationFrame(step);
}

function step() {
  frame = 0;
  let moving = false;
  for (const eye of eyes) {
    if (!eye.element.isConnected) eyes.delete(eye);
    else moving = eye.step() || moving;
  }
  // When nothing moves, no frame is requested.
  if (moving) wake();
}

// Lengths are in radii of the eye.
class Eye {
  x = 0; y = 0; dx = Math.random() * 0.3 - 0.15; dy = 0.1;

  constructor(element) {
    this.element = element;
    this.pupil = element.firstElementChild;
  }

  // Returns whether the pupil still moves.
  step() {
    const box = this.element.getBoundingClientRect();
    const radius = box.width / 2 || 1;
    let goalX = 0, goalY = 0.42;
    if (pointer) {
      const x = pointer.x - box.x - radius, y = pointer.y - box.y - radius;
      const reach = Math.min(1, Math.hypot(x, y) / (radius * 2)) * 0.42, angle = Math.atan2(y, x);
      goalX = Math.cos(angle) * reach;
      goalY = Math.sin(angle) * reach;
    }
    this.dx = (this.dx + (goalX - this.x) * 0.05) * 0.9;
    this.dy = (this.dy + (goalY - this.y) * 0.05) * 0.9;
    this.x += this.dx;
    this.y += this.dy;
    const distance = Math.hypot(this.x, this.y);
    if (distance > 0.44) {
      this.x *= 0.44 / distance;
      this.y *= 0.44 / distance;
      this.dx *= -0.5;
      this.dy *= -0.5;
    }
    // The pupil has 52 % of the eye's width.
    this.pupil.style.transform = `translate(${this.x / 0.52 * 50}%, ${this.y / 0.52 * 50}%)`;
    return Math.abs(this.dx) + Math.abs(this.dy) > 0.0005 || Math.hypot(goalX - this.x, goalY - this.y) > 0.01;
  }
}

// Adds an eye to a place of the page.
export function addEye(parent) {
  const element = document.createElement("span");
  element.className = "eye";
  element.append(document.createElement("i"));
  parent.append(element);
  eyes.add(new Eye(element));
  wake();
  return element;
}

// Covers the eyes drawn in a photo with moving ones. If the user prefers reduced motion, the drawn eyes stay.
export function addEyes(parent, photo) {
  parent.replaceChildren();
  if (still.matches) return;
  for (const { x, y, radius } of photo.eyes) {
    const { style } = addEye(parent);
    style.left = `${x / photo.width * 100}%`;
    style.top = `${y / photo.height * 100}%`;
    style.width = `${2 * radius / photo.width * 100}%`;
  }
}
