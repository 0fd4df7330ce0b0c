// Lets a reader choose a node in the picture of the graph, with the mouse or the keyboard.
(() => {
  const picture = document.querySelector(".drawing svg");
  const panels = new Map();
  for (const panel of document.querySelectorAll("details.node")) {
    if (!panels.has(panel.dataset.node)) panels.set(panel.dataset.node, panel);
  }
  const boxes = picture
    ? [...picture.querySelectorAll("g[data-node]")].filter((box) => panels.has(box.dataset.node))
    : [];
  if (!boxes.length) return;

  picture.setAttribute("role", "listbox");
  for (const box of boxes) {
    box.setAttribute("role", "option");
    box.setAttribute("aria-label", said(panels.get(box.dataset.node)));
    box.addEventListener("click", () => choose(box, true));
    box.addEventListener("keydown", (event) => moved(event, box));
  }
  for (const panel of panels.values()) {
    panel.addEventListener("toggle", () => {
      const box = boxes.find((one) => one.dataset.node === panel.dataset.node);
      if (panel.open && box && box.getAttribute("aria-selected") !== "true") choose(box, false);
    });
  }
  mark(null);

  function moved(event, box) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const at = boxes.indexOf(box);
    if (step) go(boxes[Math.min(boxes.length - 1, Math.max(0, at + step))]);
    else if (event.key === "Home") go(boxes[0]);
    else if (event.key === "End") go(boxes[boxes.length - 1]);
    else if (event.key === "Enter" || event.key === " ") choose(box, true);
    else if (event.key === "Escape") clear();
    else return;
    event.preventDefault();
  }

  function go(box) {
    choose(box, true);
    box.focus();
  }

  function choose(box, show) {
    mark(box);
    const chosen = panels.get(box.dataset.node);
    for (const panel of panels.values()) panel.open = panel === chosen;
    document.getElementById("said").textContent = said(chosen);
    if (show) reveal(chosen);
  }

  function clear() {
    mark(null);
    for (const panel of panels.values()) panel.open = false;
  }

  // One stop of the tab key leads into the picture, to the node that is chosen or to the first.
  function mark(chosen) {
    for (const box of boxes) {
      box.setAttribute("aria-selected", String(box === chosen));
      box.setAttribute("tabindex", box === (chosen || boxes[0]) ? "0" : "-1");
    }
  }

  // Scrolls the list, and the page only where the list stands below the picture.
  function reveal(panel) {
    const list = panel.parentElement;
    list.scrollTop += panel.getBoundingClientRect().top - list.getBoundingClientRect().top;
    const side = list.getBoundingClientRect();
    if (side.top > picture.getBoundingClientRect().bottom && side.top > window.innerHeight - 160) {
      panel.scrollIntoView({ block: "nearest" });
    }
  }

  function said(panel) {
    return panel.querySelector("summary").innerText.replace(/\s+/g, " ").trim();
  }
})();

// Paper shows what a reader would have to open.
(() => {
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
  });
})();
