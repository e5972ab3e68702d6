// Eyes that follow the pointer and wobble: each pupil hangs on a spring and bounces off the rim.

const still = matchMedia("(prefers-reduced-motion: reduce)");
const pointer = { x: innerWidth / 2, y: innerHeight, moved: false };
addEventListener("pointermove", (event) => {
  pointer.x = event.clientX;
  pointer.y = event.clientY;
  pointer.moved = true;
  wake();
});

const eyes = new Set();
let frame = 0;

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

class Eye {
  x = 0; y = 0; dx = 0; dy = 0;

  constructor(element) {
    this.element = element;
    this.pupil = element.firstElementChild;
    element.addEventListener("pointerdown", () => this.nudge(0.25));
  }

  nudge(force) {
    const angle = Math.random() * 2 * Math.PI;
    this.dx += Math.cos(angle) * force;
    this.dy += Math.sin(angle) * force;
    wake();
  }

  // Lengths are in radii of the eye. Returns whether the pupil still moves.
  step() {
    const box = this.element.getBoundingClientRect();
    const radius = box.width / 2 || 1;
    let goalX = 0, goalY = 0.42;
    if (pointer.moved) {
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
  const eye = new Eye(element);
  eyes.add(eye);
  eye.nudge(0.15);
  return element;
}

// Covers the eyes drawn in a photo with moving ones. If the user prefers reduced motion, the drawn eyes stay.
export function addEyes(parent, photo) {
  parent.replaceChildren();
  if (still.matches) return;
  for (const { x, y, radius } of photo.eyes) {
    const element = addEye(parent);
    element.style.left = `${x / photo.width * 100}%`;
    element.style.top = `${y / photo.height * 100}%`;
    element.style.width = `${2 * radius / photo.width * 100}%`;
  }
}
