// On every page, so it does little: only the roadmap fetches the rest.

let leave = () => {};

async function enter() {
  leave();
  leave = () => {};
  const root = document.querySelector(".roadmap");
  if (!root) return;
  const { mount } = await import("./roadmap-page.js");
  // another page may have come meanwhile, or the same emission twice
  if (!root.isConnected || root.dataset.mounted) return;
  root.dataset.mounted = "yes";
  leave = mount(root);
}

document$.subscribe(enter);
