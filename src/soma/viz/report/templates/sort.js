// Lets a reader sort a table by the column whose head is pressed; what has no value stands last.
(() => {
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(table, body, head, column));
      head.append(button);
    });
  }

  function sort(table, body, head, column) {
    const falls = head.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", falls ? "descending" : "ascending");
    const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
    const rows = [...body.rows].sort((one, other) => {
      const [a, b] = [value(one), value(other)];
      if (a === "" || b === "") return (a === "") - (b === "");
      const numbers = !isNaN(a) && !isNaN(b);
      const order = numbers ? a - b : a.localeCompare(b, undefined, { numeric: true });
      return falls ? -order : order;
    });
    body.append(...rows);
    document.getElementById("said").textContent =
      `Sorted by ${head.innerText.trim()}, ${falls ? "falling" : "rising"}.`;
  }
})();
