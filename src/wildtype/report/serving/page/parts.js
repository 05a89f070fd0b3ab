// What the other files share: elements, texts and requests. Data is only ever set as text.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== ""));
  return element;
}

// An element with attributes (functions listen to the event of their name) and children (texts or elements).
export const make = (tag, attributes = {}, ...children) =>
  filled(document.createElement(tag), attributes, children);

export const draw = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, tag), attributes, children);

export const at = (id) => document.getElementById(id);

// The answer to a request; throws an error with the server's sentence.
export async function ask(path, request, signal) {
  const options = request === undefined ? { signal } : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request), signal,
  };
  let reply;
  try {
    reply = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer: start wildtype serve again, then reload this page.");
  }
  if (!reply.ok) throw new Error((await reply.json()).error);
  return reply;
}

export const asked = async (path, request, signal) => (await ask(path, request, signal)).json();

// How many decimals show differences of a hundredth of the usual spread of a phenotype.
export const decimals = (sd) => (sd ? Math.min(Math.max(2 - Math.floor(Math.log10(sd)), 0), 8) : 3);

export const number = (value, digits) =>
  value == null ? "–" : value.toFixed(digits).replace("-", "−").replace(/^−(0\.?0*)$/, "$1");

// A gene as a set is written: its systematic name, and the kind where it is not the usual one.
export const written = (gene) =>
  gene.usual === undefined || gene.kind === gene.usual ? gene.name : `${gene.name}:${gene.kind}`;

export const called = (gene) => (gene.label === gene.name ? gene.name : `${gene.label} (${gene.name})`);

// Genes as people read them: names, and what was done to one that was not deleted.
export const genesShown = (genes) => genes.flatMap((gene, i) => [
  i ? " " : "",
  make("span", { class: "gene", title: `${called(gene)}, ${gene.kind}${gene.essential ? ", essential" : ""}` },
    gene.label, gene.kind === "absent" ? "" : make("small", {}, ` ${gene.kind}`)),
]);

// A table whose cells say their column, for narrow windows where every row is a card.
export function table(columns, rows, caption = "") {
  const head = columns.map((column) => make("th", { role: "columnheader", class: column.class }, column.name));
  const body = rows.map((row) => make("tr", { role: "row", class: row.class }, row.cells.map((cell, i) =>
    make(i ? "td" : "th", {
      role: i ? "cell" : "rowheader", class: columns[i].class, "data-column": columns[i].name,
    }, make("span", { class: "cell" }, cell)))));
  return make("table", { role: "table", class: "rows" },
    caption ? make("caption", {}, caption) : "",
    make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, head)),
    make("tbody", { role: "rowgroup" }, body));
}
