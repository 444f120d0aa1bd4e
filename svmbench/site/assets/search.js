// Pages and places with every word of the query, from the list in search-data.js.
"use strict";

const MOST_SHOWN = 60;
const query = document.getElementById("query");
const results = document.getElementById("results");
const count = document.getElementById("count");

function find() {
  const words = query.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length
    ? SEARCH_ENTRIES.filter(([kind, title, more]) => {
        const text = `${kind} ${title} ${more}`.toLowerCase();
        return words.every((word) => text.includes(word));
      })
    : [];
  results.replaceChildren(
    ...found.slice(0, MOST_SHOWN).map(([kind, title, more, url]) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = url;
      link.textContent = title;
      item.append(`${kind}: `, link, more ? ` (${more})` : "");
      return item;
    })
  );
  count.textContent = words.length ? `${found.length} found` : "";
}

query.addEventListener("input", find);
document.getElementById("search").addEventListener("submit", (event) => event.preventDefault());
query.value = new URLSearchParams(location.search).get("q") || "";
find();
