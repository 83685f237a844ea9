// On every page, so it does little: an exercise fetches the rest, and only its own page keeps it.

let leave = () => {};

async function enter() {
  leave();
  leave = () => {};
  const root = document.querySelector(".exercise");
  if (!root) return;
  const { mount } = await import("./page.js");
  // another page may have come meanwhile, or the same emission twice
  if (!root.isConnected || root.dataset.mounted) return;
  root.dataset.mounted = "yes";
  leave = mount(root);
}

document$.subscribe(enter);
