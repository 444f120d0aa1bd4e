// Tables that sort and filter. Without it every page still says all it has to say.
"use strict";

// What has no value stands last, whichever way it goes.
function compare(a, b, sign) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * String(a).localeCompare(String(b), "en", { numeric: true });
}

// A column is one of numbers where any of its cells says what it is sorted by.
function withKeys(rows, index) {
  const cells = rows.map((row) => row.cells[index]);
  const numeric = cells.some((cell) => cell.dataset.order !== undefined);
  const number = (cell) => (cell.dataset.order === undefined ? null : Number(cell.dataset.order));
  const key = (cell) => (numeric ? number(cell) : cell.textContent.trim());
  return rows.map((row, place) => ({ row, key: key(cells[place]) }));
}

function sortBy(table, head, index) {
  const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  for (const other of table.tHead.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  const body = table.tBodies[0];
  const keyed = withKeys([...body.rows], index);
  keyed.sort((a, b) => compare(a.key, b.key, sign));
  body.append(...keyed.map((one) => one.row));
}

function makeSortable(table) {
  const heads = [...table.tHead.querySelectorAll("th[data-sort]")];
  // In a head of two rows those that span both come first, in the order of the columns.
  heads.forEach((head, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    const column = table.tHead.rows.length > 1 ? index : head.cellIndex;
    button.addEventListener("click", () => sortBy(table, head, column));
  });
}

function makeFilterable(table) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 4) return;
  const label = document.createElement("label");
  const input = document.createElement("input");
  const status = document.createElement("span");
  input.type = "search";
  status.setAttribute("role", "status");
  label.append("Show rows that contain ", input);
  let verdict = "";
  const show = () => {
    const wanted = input.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const fits = !verdict || row.dataset.verdict === verdict;
      row.hidden = !fits || !wanted.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    status.textContent = wanted.length || verdict ? `${shown} of ${rows.length} rows` : "";
  };
  input.addEventListener("input", show);
  const tools = document.createElement("div");
  tools.className = "tools";
  tools.append(...verdictButtons(rows, (one) => { verdict = one; show(); }), label, status);
  table.parentElement.before(tools);
}

// Rows with verdicts get a button for each verdict, which shows the rows with exactly this one.
function verdictButtons(rows, choose) {
  const verdicts = new Set(rows.map((row) => row.dataset.verdict).filter(Boolean));
  const buttons = [...verdicts].map((verdict) => {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.verdict = verdict;
    button.textContent = verdict;
    button.setAttribute("aria-pressed", "false");
    return button;
  });
  const press = (chosen) => {
    for (const one of buttons) one.setAttribute("aria-pressed", String(one === chosen));
    choose(chosen ? chosen.dataset.verdict : "");
  };
  for (const button of buttons) {
    button.addEventListener("click", () => {
      press(button.getAttribute("aria-pressed") === "true" ? null : button);
    });
  }
  // The counts at the top of the page lead to the claims that they count.
  for (const link of document.querySelectorAll("a[data-show]")) {
    link.addEventListener("click", () => {
      press(buttons.find((one) => one.dataset.verdict === link.dataset.show) || null);
    });
  }
  return buttons;
}

for (const table of document.querySelectorAll("table.sortable")) {
  makeSortable(table);
  makeFilterable(table);
}

// A claim that is linked to shows what decides it; on paper everything is shown.
function openTarget() {
  const id = decodeURIComponent(location.hash.slice(1));
  const target = document.getElementById(id);
  target?.closest("details")?.setAttribute("open", "");
  target?.querySelector("details")?.setAttribute("open", "");
}
addEventListener("hashchange", openTarget);
openTarget();
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
